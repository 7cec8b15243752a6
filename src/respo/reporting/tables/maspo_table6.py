"""avg@K and pass@K of models beside the grid, which have few methods. MASPO, Table 6."""

from respo.reporting import selection
from respo.reporting.grid import Grid, of_verifiers

PRINTED = ("table6",)
SECTIONS = ()
GRID = Grid(
    id="maspo/table6",
    title="avg@K and pass@K, models beside the grid",
    kinds=(
        "avg",
        "pass",
    ),
    runs=selection.beside_grid,
    benchmarks=of_verifiers("math_verify", "strict_box", "code", "choice"),
    otherwise="shows models that only extra_runs name, and the study has none that is evaluated",
)
applies, inputs, make = GRID.applies, GRID.inputs, GRID.make
