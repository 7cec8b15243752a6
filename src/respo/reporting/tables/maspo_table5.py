"""Parameters of one objective: avg@K and pass@K. MASPO, Table 5.

A block per model, N and objective that has at least three sets of parameters, all with the same
options of a run; its columns of parameters are those in which they differ.
"""

from functools import partial

from respo.config.schema import Method
from respo.config.study import ResolvedStudy
from respo.reporting import selection
from respo.reporting.grid import Grid
from respo.reporting.layout import Cell, Table, text
from respo.reporting.results import Results
from respo.reporting.rows import Row
from respo.reporting.selection import Family

PRINTED = ("table5",)
SECTIONS = ()
GRID = Grid(
    id="maspo/table5",
    title="parameters, avg@K and pass@K",
    kinds=("avg", "pass"),
    runs=selection.sweeps,
    benchmarks=lambda study: list(study.benchmarks),
    otherwise=f"shows at least {selection.SWEEP} sets of parameters of one objective with the same "
    "model and N, and the study has none that are evaluated",
)
applies, inputs = GRID.applies, GRID.inputs


def make(results: Results) -> Table:
    """Read the cells and lay out the table.

    Raises:
        UserError: a damaged or misplaced cell.
    """
    study = results.study
    swept = [study.methods[name] for name in dict.fromkeys(r.method for r in GRID.runs(study))]
    families: dict[Family, list[Method]] = {}
    for method in swept:
        families.setdefault(selection.family(method), []).append(method)
    names = {family: selection.differing(methods) for family, methods in families.items()}
    shown = dict.fromkeys(name for found in names.values() for name in found)
    extra = [(text(name, name), partial(_value, study, names, name)) for name in shown]
    return GRID.lay_out(
        results,
        GRID.pools(results),
        extra=extra,
        block=lambda row: (
            row.model,
            row.staleness,
            selection.family(study.methods[row.method]),
        ),
        compared="a model, N and objective",
    )


def _value(study: ResolvedStudy, names: dict[Family, list[str]], name: str, row: Row) -> Cell:
    method = study.methods[row.method]
    if name not in names[selection.family(method)]:
        return ""
    value = method.parameters.get(name)
    return "none" if value is None else f"{value:g}"
