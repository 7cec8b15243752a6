"""avg@K and pass@K on mathematical benchmarks. ASPO, Table 1.

Departure from the paper: the average of pass@K is shown too.
"""

from respo.reporting import selection
from respo.reporting.grid import Grid, of_verifiers

PRINTED = ("table1",)
SECTIONS = ()
GRID = Grid(
    id="aspo/table1",
    title="avg@K and pass@K, mathematics",
    kinds=(
        "avg",
        "pass",
    ),
    runs=selection.main,
    benchmarks=of_verifiers("math_verify", "strict_box"),
    otherwise="shows benchmarks with verifier math_verify or strict_box, and the study has none",
)
applies, inputs, make = GRID.applies, GRID.inputs, GRID.make
