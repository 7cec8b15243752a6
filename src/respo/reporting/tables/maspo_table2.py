"""Averages by model, and what each method gains. MASPO, Table 2.

Departure from the paper: all methods of the study are shown, each with the standard error of its
gain, from replicates that are paired by problem, its spread over seeds, and whether it is resolved.
"""

from respo.config import Run
from respo.config.study import ResolvedStudy
from respo.reporting import contrasts, selection
from respo.reporting.grid import LEAD, Grid, Part, lead, number, ours, samples
from respo.reporting.layout import Block, Cell, Column, Number, Table, percent, text
from respo.reporting.notes import missing
from respo.reporting.results import Results
from respo.reporting.rows import MACRO, Row, blocks
from respo.statistics import across_seeds

PRINTED = ("table2",)
SECTIONS = ()


def _runs(study: ResolvedStudy) -> list[Run]:
    """Return the runs of the grid and of models beside it; none without any method."""
    if not selection.trained(study):
        return []
    own = set(selection.grid(study)) | set(selection.beside_grid(study))
    return [run for run in study.evaluated() if run in own]


GRID = Grid(
    id="maspo/table2",
    title="averages by model",
    kinds=("avg", "pass"),
    runs=_runs,
    benchmarks=lambda study: list(study.benchmarks),
    otherwise="shows what methods gain, and no trained run is evaluated",
)
applies, inputs = GRID.applies, GRID.inputs


def make(results: Results) -> Table:
    """Read the cells and lay out the table.

    Raises:
        UserError: a damaged or misplaced cell.
    """
    study, pools = results.study, GRID.pools(results)
    names = list(study.benchmarks)
    parts = [(Part(kind, samples(study, names)), rows) for kind, rows in pools.items()]
    columns = [*LEAD]
    for part, _ in parts:
        column = part.column(study, MACRO)
        gain, head = f"{column.key}_gain", str(column.label).replace("Macro average", "Gain,")
        columns += [
            column,
            Column(gain, head, scale=100.0, sign=True, error=f"{gain}_standard_error"),
            percent(f"{gain}_seed_sd", "Gain, seed sd"),
            text(f"{gain}_verdict", "Verdict"),
        ]
    lines = {
        (row.model, row.staleness, row.method): [
            *lead(study, row),
            *(cell for _, rows in parts for cell in _cells(study, rows, index)),
        ]
        for index, row in enumerate(parts[0][1])
    }
    table_blocks = [
        Block([lines[row.model, row.staleness, row.method] for row in block], ranked=staleness != 1)
        for staleness, block in blocks(parts[0][1])
    ]
    reference = selection.reference(study)
    gain = (
        f"Gain: in points, over {study.methods[reference].label} of the same model and N, with the "
        "standard error of the difference from the same replicates, paired by problem, and the "
        "population standard deviation (ddof 0) over the seeds that both have."
    )
    verdict = f"Verdict on the gain before it, as in respo/table1. {contrasts.VERDICTS}"
    notes = [*GRID.about(results, pools), gain, verdict, *missing(results, GRID.id, inputs(study))]
    return Table(GRID.title, columns, table_blocks, notes, ours=ours(parts))


def _cells(study: ResolvedStudy, rows: list[Row], index: int) -> list[Cell]:
    """Return the average of a row, its gain, the spread of this over seeds, and the verdict."""
    row, name = rows[index], selection.reference(study)
    found = number(row, MACRO)
    if row.method == name or row.runs[0].is_baseline:
        return [found, "", "", ""]
    place = (row.model, row.staleness, name)
    first = next((r for r in rows if (r.model, r.staleness, r.method) == place), None)
    if first is None:
        return [found, "", "", ""]
    if first.bootstrap is None or row.bootstrap is None:
        return [found, None, "", ""]
    difference_R = row.bootstrap.macro_replicates_R - first.bootstrap.macro_replicates_R
    contrast = contrasts.compare(first, row)
    partial = row.is_partial(MACRO) or first.is_partial(MACRO)
    by_seed = contrast.by_seed
    return [
        found,
        Number(contrast.difference, float(difference_R.std(ddof=1)), partial=partial),
        Number(across_seeds(by_seed)[1]) if len(by_seed) > 1 else "",
        contrast.verdict,
    ]
