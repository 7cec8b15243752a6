"""How runs stand together: the seeds of one model, N and method, and the columns of a figure.

Snakemake asks at every start: nothing here may need matplotlib.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from respo.config import Run
from respo.config.study import ResolvedStudy
from respo.reporting import labels
from respo.reporting.layout import Cell, text

# Of the rows that stand for a group.
LEAD = [
    text("model", None),
    text("method", None),
    text("N", None),
    text(None, "Model"),
    text(None, "N"),
    text(None, "Method"),
]


class Setting(NamedTuple):
    """What a column of panels shows: one model at one N."""

    model: str
    staleness: int

    def title(self, study: ResolvedStudy, between: str = ", ") -> str:
        """Return the text above the column."""
        return f"{study.models[self.model].label}{between}N = {self.staleness}"


class Group(NamedTuple):
    """The runs of one model, N and method: one per seed."""

    model: str
    staleness: int
    method: str
    runs: tuple[Run, ...]

    def lead(self, study: ResolvedStudy) -> list[Cell]:
        """Return the names of a row."""
        return [
            self.model,
            self.method,
            str(self.staleness),
            study.models[self.model].label,
            labels.staleness(self),
            labels.method(study, self),
        ]

    def is_reference_in(self, setting: Setting) -> bool:
        """Whether these are on-policy runs beside those of a larger N."""
        return self.staleness != setting.staleness


def groups(runs: Iterable[Run]) -> list[Group]:
    """Group runs, which are in the order of the study, by model, N and method."""
    keyed = groupby(runs, key=lambda run: (run.model, run.staleness, run.method))
    return [Group(*key, tuple(seeds)) for key, seeds in keyed]


def settings(runs: Iterable[Run]) -> list[Setting]:
    """Return the columns of panels that runs need.

    On-policy runs are the reference in all columns of their model; alone, they have their own.
    """
    found = list(dict.fromkeys(Setting(run.model, run.staleness) for run in runs))
    stale = {setting.model for setting in found if setting.staleness > 1}
    return [setting for setting in found if setting.staleness > 1 or setting.model not in stale]


def shown_in(setting: Setting, all_groups: Iterable[Group]) -> list[Group]:
    """Return the groups of a column: those of its N, and at last the on-policy reference."""
    shown = [
        group
        for group in all_groups
        if group.model == setting.model and group.staleness in (1, setting.staleness)
    ]
    return sorted(shown, key=lambda group: group.is_reference_in(setting))
