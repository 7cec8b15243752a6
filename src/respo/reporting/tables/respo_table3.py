"""The settings of each method, from the configuration. ReSPO, Table 3."""

from pathlib import Path

from respo.config.schema import Method
from respo.config.study import OPTIONS, ResolvedStudy
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
            _listed(method.parameters),
            _listed(_options(method)),
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


def _options(method: Method) -> dict[str, object]:
    return method.model_dump(include=OPTIONS, exclude_none=True)


def _listed(values: dict[str, object]) -> str:
    return ", ".join(f"{name} {_shown(value)}" for name, value in values.items())


def _shown(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)
