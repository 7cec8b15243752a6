"""avg@K and pass@K on benchmarks of programs. ASPO, Table 2."""

from respo.reporting import selection
from respo.reporting.grid import Grid, of_verifiers

PRINTED = ("table2",)
SECTIONS = ()
GRID = Grid(
    id="aspo/table2",
    title="avg@K and pass@K, programs",
    kinds=(
        "avg",
        "pass",
    ),
    runs=selection.main,
    benchmarks=of_verifiers("code"),
    otherwise="shows benchmarks with verifier code, and the study has none",
)
applies, inputs, make = GRID.applies, GRID.inputs, GRID.make
