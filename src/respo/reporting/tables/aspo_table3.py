"""Accuracy on multiple-choice benchmarks, which no run is trained for. ASPO, Table 3."""

from respo.reporting import selection
from respo.reporting.grid import Grid, of_verifiers

PRINTED = ("table3",)
SECTIONS = ()
GRID = Grid(
    id="aspo/table3",
    title="accuracy, multiple choice",
    kinds=("accuracy",),
    runs=selection.main,
    benchmarks=of_verifiers("choice"),
    otherwise="shows benchmarks with verifier choice, and the study has none",
)
applies, inputs, make = GRID.applies, GRID.inputs, GRID.make
