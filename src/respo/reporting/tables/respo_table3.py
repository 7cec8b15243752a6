"""The settings of each method, from the configuration. ReSPO, Table 3."""

from pathlib import Path

from respo.config.study import ResolvedStudy
from respo.reporting import labels, selection
from respo.reporting.layout import Block, Cell, Table, text
from respo.reporting.results import Results

PRINTED = ()
SECTIONS = ()
COLUMNS = [
    text("method", None),
    text("label", "Method"),
    text("objective", "Objective"),
    text("parameters", "Parameters"),
    text("options", "Options"),
    text("source", "Source"),
]


def applies(study: ResolvedStudy) -> str | None:
    """Return why the table cannot be made for a study; None if it can."""
    return None if study.methods else "shows methods, and the study has none"


def inputs(study: ResolvedStudy) -> list[Path]:
    """Return the files that it is made from: none but the study itself."""
    return []


def make(results: Results) -> Table:
    """Lay out a row per method."""
    methods = results.study.methods
    rows: list[list[Cell]] = [
        [
            name,
            method.label,
            method.objective,
            labels.settings(method.parameters),
            labels.settings(selection.options(method)),
            method.source,
        ]
        for name, method in methods.items()
    ]
    notes = [
        "Parameters of the objective, all of them; pos and neg are by sign of the advantage. "
        "Options are those of a run that the method sets itself, instead of the study.",
        *(
            f"{method.label} departs from its source: {' '.join(method.deviations)}"
            for method in methods.values()
            if method.deviations
        ),
    ]
    return Table("methods", COLUMNS, [Block(rows, ranked=False)], notes)
