"""Ablations beside the methods that they are compared with: avg@K. ASPO, Table 4."""

from respo.reporting import selection
from respo.reporting.grid import Grid, of_verifiers

PRINTED = ("table4",)
SECTIONS = ()
GRID = Grid(
    id="aspo/table4",
    title="ablations, avg@K",
    kinds=("avg",),
    runs=selection.ablations,
    benchmarks=of_verifiers("math_verify", "strict_box", "code"),
    otherwise="shows methods beside the study's own (extra_runs), and no evaluated run has one",
)
applies, inputs, make = GRID.applies, GRID.inputs, GRID.make
