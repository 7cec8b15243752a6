"""pass@1 of every model, N and method on every benchmark. ReSPO, Table 1.

Departures from the paper: several seeds are pooled, missing cells and unread answers are told, and
further tables list which differences between methods the problems and seeds can resolve, and the
responses behind each cell.
"""

from dataclasses import replace

from respo.reporting import contrasts, counts
from respo.reporting.grid import Grid
from respo.reporting.layout import Table
from respo.reporting.results import Results

PRINTED = ("table1", "sec4.3")
SECTIONS = ("contrasts", "counts")
GRID = Grid(
    id="respo/table1",
    title="pass@1",
    kinds=("pass@1",),
    runs=lambda study: study.evaluated(),
    benchmarks=lambda study: list(study.benchmarks),
    otherwise="shows what is evaluated, and nothing is",
)
applies, inputs = GRID.applies, GRID.inputs


def make(results: Results) -> Table:
    """Read the cells and lay out the table.

    Raises:
        UserError: a damaged or misplaced cell.
    """
    pools = GRID.pools(results)
    rows = pools["pass@1"]
    sections = [contrasts.section(results, rows), counts.section(results, rows)]
    return replace(GRID.lay_out(results, pools), sections=sections)
