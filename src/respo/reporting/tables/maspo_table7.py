"""pass@k for k = 1, 2, 4, ... on AIME 2024 and 2025. MASPO, Table 7.

A study without these shows the benchmarks with the most samples.

Departure from the paper: a block per benchmark, with a column per k and its standard error.
"""

from respo.config.study import ResolvedStudy
from respo.reporting import notes, selection
from respo.reporting.grid import LEAD, Grid, Part, lead, number, ours
from respo.reporting.layout import Block, Table, percent, text
from respo.reporting.results import Results
from respo.reporting.rows import blocks, pool

PRINTED = ()
SECTIONS = ()
PAPER = ("aime24", "aime25")


def benchmarks(study: ResolvedStudy) -> list[str]:
    """Return the paper's benchmarks, or else all, with the largest K; none if that is 1."""
    names = [n for n in study.benchmarks if n in PAPER] or list(study.benchmarks)
    k = max(study.samples(name) for name in names)
    return [n for n in names if k > 1 and study.samples(n) == k]


GRID = Grid(
    id="maspo/table7",
    title="pass@k",
    kinds=("pass",),
    runs=selection.main,
    benchmarks=benchmarks,
    otherwise="shows pass@k, and no benchmark of the study has more than one sample per problem",
)
applies, inputs = GRID.applies, GRID.inputs


def make(results: Results) -> Table:
    """Read the cells and lay out the table.

    Raises:
        UserError: a damaged or misplaced cell.
    """
    study, names = results.study, benchmarks(results.study)
    runs, largest = selection.main(study), study.samples(names[0])
    tries = [2**power for power in range(largest.bit_length())]
    if tries[-1] != largest:
        tries.append(largest)
    pools = {k: pool(results, names, dict.fromkeys(names, k), runs) for k in tries}
    columns = [*LEAD, text("benchmark", None), text(None, "Benchmark")]
    columns += [
        percent(f"pass_at_{k}", f"k = {k}", f"pass_at_{k}_standard_error", ranked=True)
        for k in tries
    ]
    place = {id(row): index for index, row in enumerate(pools[1])}
    table_blocks = [
        Block(
            [
                [
                    *lead(study, row),
                    name,
                    study.benchmarks[name].label,
                    *(number(pools[k][place[id(row)]], name) for k in tries),
                ]
                for row in block
            ],
            ranked=staleness != 1,
        )
        for staleness, block in blocks(pools[1])
        for name in names
    ]
    what = (
        "pass@k in percent: the chance that one of k responses is correct, the unbiased estimate "
        f"from {largest:,} responses per problem, averaged over problems."
    )
    about = [
        what,
        notes.BOOTSTRAP,
        *notes.partial(study, pools[1]),
        *notes.ranking([block for _, block in blocks(pools[1])], "a model, N and benchmark"),
        *notes.parameters(study, pools[1]),
        *notes.missing(results, GRID.id, inputs(study)),
    ]
    parts = [(Part("pass", dict.fromkeys(names, k)), rows) for k, rows in pools.items()]
    return Table(GRID.title, columns, table_blocks, about, ours=ours(parts))
