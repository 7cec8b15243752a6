"""Tables of what training curves come to: a row per model, N and method.

Early peak and late mean of the score, as ReSPO's Fig. 3 and Table 8 print them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import numpy as np

from respo.config import Run
from respo.config.study import ResolvedStudy
from respo.reporting import grouping, labels
from respo.reporting.grouping import LEAD, Group
from respo.reporting.layout import Block, Cell, Column, Number, Ours, Table, text
from respo.reporting.notes import missing, of_some_seeds
from respo.reporting.results import Results
from respo.statistics import accuracy_of_score, across_seeds, early_peak, late_score

# Shares of a run: 256 and 896 of 1024 updates, as in the paper.
EARLY, LATE = 1 / 4, 7 / 8
METRICS = ("score", "response_length", "capped_share", "approx_kl")
Curves = dict[str, np.ndarray]


@dataclass(frozen=True)
class Summary:
    """A table of training curves.

    runs: those that it shows of a study. otherwise: why it cannot be made where there are none.
    """

    id: str
    title: str
    runs: Callable[[ResolvedStudy], Sequence[Run]]
    otherwise: str

    def applies(self, study: ResolvedStudy) -> str | None:
        """Return why the table cannot be made for a study; None if it can."""
        return None if self.runs(study) else self.otherwise

    def inputs(self, study: ResolvedStudy) -> list[Path]:
        """Return the files that it is made from, below the study's folder."""
        names = ("metrics.parquet", "config.yaml")
        return [run.folder(Path()) / name for run in self.runs(study) for name in names]

    def make(self, results: Results) -> Table:
        """Read the metrics and lay out the table.

        Raises:
            UserError: a damaged file.
        """
        study, updates = results.study, results.study.study.updates
        early, late = round(updates * EARLY), round(updates * LATE)
        found = {group: _curves(results, group.runs) for group in grouping.groups(self.runs(study))}
        rows = {
            group: [
                *group.lead(study),
                *_cells(group, curves, late, early),
                _seed_sd(group, curves, late, early),
                _seeds(group, curves),
            ]
            for group, curves in found.items()
        }
        blocks = [
            Block([rows[group] for group in of_block], ranked=False)
            for _, of_block in groupby(rows, key=lambda group: group[:2])
        ]
        about = [
            "Score: (s + 1) / 2 in percent, where s is the mean reward of an update's responses, "
            f"length penalty included. Early peak: the maximum of the updates 1 to {early:,}. All "
            f"but the first and the final score: mean over the updates {late:,} to {updates:,}, "
            "weighted by update (trapezoids), with ± the standard deviation in time within the "
            "run. Means over seeds; seed sd: population standard deviation (ddof 0) of the late "
            "score over seeds.",
            "Capped: share of the responses that were cut at the length limit. Approximate KL: "
            "mean over tokens of the log probability when sampled minus that when learned from, "
            "nats.",
            *_untrained(study, found, early),
            *_partial(study, found),
            *missing(results, self.id, self.inputs(study), "files of runs"),
        ]
        return Table(self.title, COLUMNS, blocks, about, ours=_ours(found, late, early))


def _percent(key: str, label: str, error: str | None = None) -> Column:
    return Column(key, label, digits=2, scale=100.0, error=error)


COLUMNS = [
    *LEAD,
    _percent("early_peak", "Early peak, %"),
    _percent("late_score", "Late score, %", "late_score_sd"),
    _percent("final_score", "Final score, %"),
    Column("response_length", "Response length, tokens", error="response_length_sd"),
    _percent("capped_share", "Capped, %", "capped_share_sd"),
    Column("approx_kl", "Approx. KL × 1,000, nats", digits=2, scale=1000, error="approx_kl_sd"),
    _percent("late_score_seed_sd", "Late score, seed sd, %"),
    text(None, "Seeds"),
]


def _curves(results: Results, runs: Sequence[Run]) -> list[Curves]:
    found = [results.metrics(run, *METRICS) for run in runs]
    return [
        {**metrics, "score": accuracy_of_score(metrics["score"])}
        for metrics in found
        if metrics is not None
    ]


def _untrained(study: ResolvedStudy, found: dict[Group, list[Curves]], early: int) -> list[str]:
    """Write whose early peak is a score of the policy before its training.

    The first N updates learn from one rollout batch, which this policy sampled.
    """
    peaks = {
        group: sum(int(np.argmax(of_seed["score"][:early])) < group.staleness for of_seed in curves)
        for group, curves in found.items()
        if curves
    }
    parts = []
    for (model, staleness), groups in groupby(peaks, key=lambda group: group[:2]):
        of_block = list(groups)
        where = f"{study.models[model].label}, N = {staleness}"
        if staleness >= early:
            parts.append(f"{where}: all, as no other update is that early")
        elif all(peaks[group] == len(found[group]) for group in of_block):
            parts.append(f"{where}: all")
        else:
            names = [
                labels.method(study, group) + _of_seeds(peaks[group], len(found[group]))
                for group in of_block
                if peaks[group]
            ]
            parts += [f"{where}: {', '.join(names)}"] if names else []
    if not parts:
        return []
    return [
        "The first N updates learn from responses of the policy before its training, and their "
        "score is that policy's own. The early peak is such a score, and no gain of training, of "
        f"{'; '.join(parts)}."
    ]


def _of_seeds(some: int, all_: int) -> str:
    return "" if some == all_ else f" ({some} of {all_} seeds)"


def _partial(study: ResolvedStudy, found: dict[Group, list[Curves]]) -> list[str]:
    """Write which rows are of some of their seeds alone."""
    rows = [
        f"{study.models[group.model].label}, N = {group.staleness}, "
        f"{labels.method(study, group)}: {_seeds(group, curves)} seeds"
        for group, curves in found.items()
        if 0 < len(curves) < len(group.runs)
    ]
    return of_some_seeds(rows)


def _cells(group: Group, curves: list[Curves], late: int, early: int) -> list[Cell]:
    """Return the summaries of a row, which are missing where no seed is there."""
    found = [_mean(curves, summary) for summary in _summaries(late, early).values()]
    return [value and value._replace(partial=len(curves) < len(group.runs)) for value in found]


def _summaries(late: int, early: int) -> dict[str, Callable[[Curves], tuple[float, float | None]]]:
    def of_late(name: str) -> Callable[[Curves], tuple[float, float | None]]:
        def summary(curves: Curves) -> tuple[float, float | None]:
            values = curves[name]
            return late_score(np.arange(1, values.size + 1), values, late, values.size)

        return summary

    def peak(curves: Curves) -> tuple[float, float | None]:
        score = curves["score"]
        return early_peak(np.arange(1, score.size + 1), score, early), None

    return {
        "early_peak": peak,
        "late_mean": of_late("score"),
        "final": lambda curves: (float(curves["score"][-1]), None),
        "response_length": of_late("response_length"),
        "capped_share": of_late("capped_share"),
        "approx_kl": of_late("approx_kl"),
    }


def _mean(
    curves: list[Curves], summary: Callable[[Curves], tuple[float, float | None]]
) -> Number | None:
    if not curves:
        return None
    values = [summary(of_seed) for of_seed in curves]
    deviations = [deviation for _, deviation in values if deviation is not None]
    return Number(
        float(np.mean([value for value, _ in values])),
        float(np.mean(deviations)) if deviations else None,
    )


def _seed_sd(group: Group, curves: list[Curves], late: int, early: int) -> Cell:
    """Return the spread of the late score over seeds; nothing for fewer than two."""
    if len(curves) < 2:
        return ""
    late_mean = _summaries(late, early)["late_mean"]
    spread = across_seeds([late_mean(of_seed)[0] for of_seed in curves])[1]
    return Number(spread, partial=len(curves) < len(group.runs))


def _seeds(group: Group, curves: list[Curves]) -> str:
    done, named = len(curves), len(group.runs)
    return str(named) if done == named else f"{done} of {named}"


def _ours(found: dict[Group, list[Curves]], late: int, early: int) -> Ours:
    def find(model: str, method: str, staleness: int, _: str, metric: str) -> Number | None:
        for group, curves in found.items():
            if group[:3] == (model, staleness, method):
                value = _mean(curves, _summaries(late, early)[metric])
                # The deviation in time is no error of the mean.
                return value and Number(100 * value.value, partial=len(curves) < len(group.runs))
        return None

    return find
