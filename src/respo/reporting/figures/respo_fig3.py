"""Training curves: score and mean log W against policy updates. ReSPO, Fig. 3.

Departure from the paper: its accuracy by response length is not drawn; instead, the second row
shows how far the policy drifts from the one that sampled.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from respo.config import Run
from respo.reporting import style
from respo.reporting.results import Results
from respo.statistics import accuracy_of_score

ON_POLICY = "on-policy (N = 1)"
# The score's running mean spans this share of a run.
WINDOW_SHARE = 1 / 16
MISSING_NAMED = 4
# The axis of log W is linear up to here and logarithmic beyond, on both sides of 0.
LINEAR_TO = 0.1


@dataclass(frozen=True)
class Curve:
    """Mean over the seeds that are there, one value per update; spread is None for one seed."""

    mean: np.ndarray
    spread: np.ndarray | None


@dataclass(frozen=True)
class Group:
    """The runs of one (model, N, method), and the curves of those that are there."""

    model: str
    staleness: int
    method: str
    score: Curve | None
    log_weight: Curve | None


def draw(results: Results) -> Figure:
    """Draw two rows of panels per model (score, mean log W), a column per N."""
    study = results.study
    groups = list(gather(results))
    # On-policy runs are the reference of every panel; alone, they have panels of their own.
    columns = sorted({group.staleness for group in groups if group.staleness > 1}) or [1]
    models = list(dict.fromkeys(group.model for group in groups))
    rows = 2 * len(models)
    figure = Figure(figsize=(1.0 + 2.3 * len(columns), 0.9 + 1.9 * rows), layout="constrained")
    panels = figure.subplots(rows, len(columns), sharex=True, sharey="row", squeeze=False)
    lines = style.lines(study.methods)
    legend: dict[str, dict[str, Any]] = {}
    for (index, model), (column, staleness) in product(enumerate(models), enumerate(columns)):
        upper, lower = panels[2 * index : 2 * index + 2, column]
        upper.set_title(f"{study.models[model].label}, N = {staleness}")
        for group in groups:
            if group.model != model or group.staleness not in (1, staleness):
                continue
            reference = group.staleness != staleness
            line = style.REFERENCE if reference else lines[group.method]
            legend[ON_POLICY if reference else study.methods[group.method].label] = line
            draw_curve(upper, group.score, line)
            draw_curve(lower, group.log_weight, {**line, "linewidth": 1.0})
    for axes in panels[::2, 0]:
        axes.set_ylabel("training score")
    for axes in panels[1::2, 0]:
        axes.set_ylabel("mean log W")
        # Objectives differ by orders of magnitude in how far they drift.
        axes.set_yscale("symlog", linthresh=LINEAR_TO)
    for axes in panels[-1]:
        axes.set(xlabel="policy updates", xlim=(0, study.study.updates))
    # The reference is listed last.
    style.legend(figure, dict(sorted(legend.items(), key=lambda entry: entry[0] == ON_POLICY)))
    style.note(figure, _note(results))
    return figure


def gather(results: Results) -> Iterator[Group]:
    """Read the metrics of all runs of full length, in the order of the study."""
    runs: dict[tuple[str, int, str], list[Run]] = {}
    for run in results.curves():
        runs.setdefault((run.model, run.staleness, run.method), []).append(run)
    width = window(results.study.study.updates)
    for key, seeds in runs.items():
        metrics = [results.metrics(run, "score", "log_ratio_mean") for run in seeds]
        there = [metric for metric in metrics if metric is not None]
        scores = [running_mean(accuracy_of_score(metric["score"]), width) for metric in there]
        yield Group(
            *key,
            score=over_seeds(scores),
            # Not smoothed: it falls back to zero with every new rollout batch.
            log_weight=over_seeds([metric["log_ratio_mean"] for metric in there]),
        )


def window(updates: int) -> int:
    """Return the number of updates, odd, that the running mean of the score spans."""
    return 2 * round(updates * WINDOW_SHARE / 2) + 1


def running_mean(values: np.ndarray, width: int) -> np.ndarray:
    """Return the mean over `width` (odd) values around each; fewer at the ends."""
    kernel = np.ones(width)
    half = width // 2
    total = np.convolve(values, kernel)[half : half + len(values)]
    count = np.convolve(np.ones(len(values)), kernel)[half : half + len(values)]
    return total / count


def over_seeds(curves: list[np.ndarray]) -> Curve | None:
    """Return mean and population standard deviation (ddof 0) over seeds; None without any."""
    if not curves:
        return None
    stacked = np.stack(curves)
    return Curve(stacked.mean(axis=0), stacked.std(axis=0) if len(curves) > 1 else None)


def draw_curve(axes: Axes, curve: Curve | None, line: dict[str, Any]) -> None:
    """Draw the mean as a line and mean +- spread as a band."""
    if curve is None:
        return
    updates = np.arange(1, len(curve.mean) + 1)
    axes.plot(updates, curve.mean, **line)
    if curve.spread is not None:
        low, high = curve.mean - curve.spread, curve.mean + curve.spread
        axes.fill_between(updates, low, high, color=line["color"], alpha=0.18, linewidth=0)


def _note(results: Results) -> str:
    runs = results.curves()
    seeds = len({run.seed for run in runs})
    note = f"score: running mean over {window(results.study.study.updates)} updates"
    if seeds > 1:
        note += "; band: ± 1 population standard deviation over seeds"
    missing = [run.name for run in runs if not results.metrics_path(run).is_file()]
    if missing:
        named = ", ".join(missing[:MISSING_NAMED])
        more = f" and {len(missing) - MISSING_NAMED} more" if len(missing) > MISSING_NAMED else ""
        note += f"\n{len(missing)} of {len(runs)} runs missing: {named}{more}"
    return note
