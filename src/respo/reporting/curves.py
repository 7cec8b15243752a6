"""Curves against policy updates: means over seeds with their spread, and how they are drawn."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from respo.config import Run
from respo.config.study import ResolvedStudy
from respo.reporting import grouping, style
from respo.reporting.grouping import Group, Setting
from respo.statistics import mean_by_batch

# A running mean spans this share of a run.
WINDOW_SHARE = 1 / 16
ON_POLICY = "on-policy (N = 1)"
START = "as it comes"


@dataclass(frozen=True)
class Curve:
    """Mean over the seeds that are there; spread is None for one seed.

    updates: where the values stand, one per update or one per rollout batch.
    """

    updates: np.ndarray
    mean: np.ndarray
    spread: np.ndarray | None


def window(updates: int, share: float = WINDOW_SHARE) -> int:
    """Return the number of updates, odd, that a running mean over a share of a run spans."""
    return 2 * round(updates * share / 2) + 1


def points(width: int, updates: int) -> int:
    """Return the odd number of points, each the mean of so many updates, nearest to a width."""
    return 2 * round(width / updates / 2 - 0.5) + 1


def batch_means(values: np.ndarray, staleness: int) -> np.ndarray:
    """Return the mean of each rollout batch of values that are one per update."""
    return mean_by_batch(np.arange(len(values)) // staleness, values)[1]


def running_mean(values: np.ndarray, width: int) -> np.ndarray:
    """Return the mean over `width` (odd) values around each; fewer at the ends.

    NaN is left out; where nothing else is in the window, the mean is NaN.
    """
    kernel, half = np.ones(width), width // 2
    there = np.isfinite(values)
    whole = slice(half, half + len(values))
    total = np.convolve(np.where(there, values, 0.0), kernel)[whole]
    count = np.convolve(there.astype(float), kernel)[whole].round()
    return np.divide(total, count, out=np.full(len(values), np.nan), where=count > 0)


def smoothed(seeds: Sequence[np.ndarray], width: int, staleness: int = 1) -> Curve | None:
    """Return the running mean of each seed's values, one per update, over seeds.

    Args:
        seeds: the values of each.
        width: updates, an odd number, that the running mean spans.
        staleness: above 1, each rollout batch is averaged first, and stands in its middle; the
            running mean spans about as many updates, but an odd number of whole batches. For what
            starts anew with every rollout batch.
    """
    middle = (staleness + 1) / 2
    span = points(width, staleness)
    curves = []
    for values in seeds:
        means = batch_means(values, staleness)
        updates = middle + staleness * np.arange(len(means))
        curves.append((updates, running_mean(means, span)))
    return over_seeds(curves)


def over_seeds(seeds: Sequence[tuple[np.ndarray, np.ndarray]]) -> Curve | None:
    """Return mean and population standard deviation (ddof 0) over seeds; None without any.

    Args:
        seeds: updates, the same for all, and values.
    """
    if not seeds:
        return None
    stacked = np.stack([values for _, values in seeds])
    spread = stacked.std(axis=0) if len(seeds) > 1 else None
    return Curve(seeds[0][0], stacked.mean(axis=0), spread)


def draw_curve(axes: Axes, curve: Curve | None, line: dict[str, Any]) -> None:
    """Draw the mean as a line and mean +- spread as a band."""
    if curve is None:
        return
    axes.plot(curve.updates, curve.mean, **line)
    if curve.spread is not None:
        low, high = curve.mean - curve.spread, curve.mean + curve.spread
        axes.fill_between(curve.updates, low, high, color=line["color"], alpha=0.18, linewidth=0)


class Looks:
    """The lines of a figure's methods, and the legend that follows from what was drawn."""

    def __init__(self, study: ResolvedStudy, thin: bool = False) -> None:
        """Choose the lines of a study's methods, the same for each of its figures.

        Thin lines are solid too: for curves that go up and down so fast that dashes would be lost.
        """
        self._study = study
        change = {"linewidth": 0.8, "linestyle": "-"} if thin else {}
        lines = style.lines(study.methods)
        self._lines = {name: {**line, **change} for name, line in lines.items()}
        self._seen: set[str] = set()

    def line(self, group: Group, setting: Setting) -> dict[str, Any]:
        """Return the line of a group in a column, which from now on is in the legend."""
        reference = group.is_reference_in(setting)
        self._seen.add(ON_POLICY if reference else group.method)
        return style.REFERENCE if reference else self._lines[group.method]

    def start(self) -> dict[str, Any]:
        """Return the look of the model as it comes, which from now on is in the legend."""
        self._seen.add(START)
        return style.START

    def legend(self) -> dict[str, dict[str, Any]]:
        """Return label and line of what was drawn, in the order of the study, the reference last.

        Groups without any results are drawn too: their names stay in the legend.
        """
        entries = {
            self._study.methods[name].label: line
            for name, line in self._lines.items()
            if name in self._seen
        }
        others = {ON_POLICY: style.REFERENCE, START: style.START}
        return entries | {name: line for name, line in others.items() if name in self._seen}


def spread_note(runs: Iterable[Run]) -> str:
    """Say what a band is, where there are several seeds."""
    several = any(len(group.runs) > 1 for group in grouping.groups(runs))
    return "; band: ± 1 population standard deviation over seeds" if several else ""
