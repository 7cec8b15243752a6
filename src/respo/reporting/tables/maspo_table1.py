"""avg@K and pass@K of the methods and models of a study. MASPO, Table 1."""

from respo.reporting import selection
from respo.reporting.grid import Grid, of_verifiers

PRINTED = ("table1",)
SECTIONS = ()
GRID = Grid(
    id="maspo/table1",
    title="avg@K and pass@K",
    kinds=(
        "avg",
        "pass",
    ),
    runs=selection.grid,
    benchmarks=of_verifiers("math_verify", "strict_box", "code", "choice"),
    otherwise="shows what is evaluated of the study's methods and models, and nothing is",
)
applies, inputs, make = GRID.applies, GRID.inputs, GRID.make
