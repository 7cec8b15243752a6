"""Figures of training: a row of panels per quantity, a column per model and N."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator, SymmetricalLogLocator

from respo.config import Run
from respo.config.study import ResolvedStudy
from respo.reporting import choices, curves, grouping, missing, penalties, style
from respo.reporting.curves import Curve, Looks
from respo.reporting.grouping import Group, Setting
from respo.reporting.layout import PARTIAL
from respo.reporting.panels import MARGIN, over_updates, panels
from respo.reporting.results import Results
from respo.reporting.sweep import sweep_note
from respo.statistics import accuracy_of_score, cluster_bootstraps

# Points of several methods at one update lie beside each other, as far as this share of a run;
# those that no line joins farther, so that none lies on another.
SPREAD_OF_POINTS, SPREAD_OF_UNJOINED = 0.03, 0.16
# Between fewer evaluated checkpoints there is no line.
FEWEST_JOINED = 3
_SHORT = FuncFormatter(lambda value, _: f"{value:g}".replace("-", "\N{MINUS SIGN}"))


class Point(NamedTuple):
    """A share in [0, 1] and its standard error; partial: of some of the seeds alone, and marked."""

    value: float
    error: float
    partial: bool = False


class Means(NamedTuple):
    """For each benchmark the mean of each problem, empty without any; partial: of some seeds."""

    of_benchmarks: list[np.ndarray]
    partial: bool


def _unchanged(values: np.ndarray) -> np.ndarray:
    return values


def _percent(values: np.ndarray) -> np.ndarray:
    return 100 * values


def _plain(row: Sequence[Axes]) -> None:
    """Leave the vertical axes as they are."""


def _logarithmic(row: Sequence[Axes]) -> None:
    """Make the vertical axes logarithmic, with ticks such as 0.2 instead of powers of ten."""
    for axes in row:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(_SHORT)
        axes.yaxis.set_minor_locator(NullLocator())


def _of_whole(row: Sequence[Axes]) -> None:
    """Let the vertical axes begin at zero: a difference is seen as part of the whole."""
    for axes in row:
        ends = [panel.dataLim.ymax for panel in axes.get_shared_y_axes().get_siblings(axes)]
        top = max(end for end in [*ends, 0.0] if np.isfinite(end)) or 1.0
        axes.set_ylim(-0.03 * top, 1.08 * top)


def from_zero(row: Sequence[Axes]) -> None:
    """Show zero; where the objectives differ by orders of magnitude, logarithmically beyond 1."""
    for axes in row:
        axes.axhline(0, color="#999999", linewidth=0.6, zorder=1)
    ends = [abs(end) for axes in row for end in axes.get_ylim()]
    if max(ends) > 5:
        for axes in row:
            axes.set_yscale("symlog", linthresh=1.0)
            axes.yaxis.set_major_locator(
                SymmetricalLogLocator(base=10, linthresh=1, subs=(1, 2, 5))
            )
            axes.yaxis.set_major_formatter(_SHORT)


class Quantity(NamedTuple):
    """A row of panels: a column of the metrics, or the evaluated accuracy.

    by_batch: it starts anew with every rollout batch, so that only means of whole ones are smooth.
    finish: what happens to the row's vertical axes in the end.
    """

    label: str
    column: str | None
    convert: Callable[[np.ndarray], np.ndarray] = _unchanged
    by_batch: bool = False
    finish: Callable[[Sequence[Axes]], None] = _plain

    @property
    def name(self) -> str:
        """The label on one line, without its unit."""
        return self.label.replace("\n", " ").split(" (")[0]


ACCURACY = Quantity("evaluation\naccuracy", None)
SCORE = Quantity("training accuracy", "score", accuracy_of_score)
LENGTH = Quantity("response\nlength (tokens)", "response_length")
KL = Quantity("approximate KL\n(nat per token)", "approx_kl", by_batch=True, finish=from_zero)
REFERENCE_KL = Quantity("KL to initial weights\n(nat per token)", "reference_kl", finish=from_zero)
ENTROPY = Quantity("entropy\n(nat per token)", "entropy")
REPETITION = Quantity("repeated\n20-grams (%)", "repetition", _percent, finish=_of_whole)
CLIPPED = Quantity(
    "clipped tokens,\nA > 0 (%)", "clip_fraction_pos", _percent, by_batch=True, finish=_of_whole
)
GRADIENT = Quantity("gradient norm", "grad_norm", finish=_logarithmic)
DRIFT = Quantity("mean log W", "log_ratio_mean", by_batch=True, finish=from_zero)


def draw(
    results: Results,
    runs: Sequence[Run],
    quantities: Sequence[Quantity],
    smooth: bool = True,
    benchmarks: Sequence[str] | None = None,
) -> Figure:
    """Draw quantities of runs against policy updates, a line per method.

    Args:
        results: the study's folder.
        runs: of full length, in the order of the study.
        quantities: the rows.
        smooth: whether metrics are shown by their running mean; if not, lines are thin.
        benchmarks: of the evaluated accuracy; all of the study if left out.
    """
    looks = Looks(results.study, thin=not smooth)
    heads = [quantity.label for quantity in quantities]
    figure, found = panels(results.study, grouping.settings(runs), heads)
    fill(results, runs, quantities, found, looks, smooth, benchmarks)
    style.legend(figure, looks.legend())
    style.note(figure, note(results, runs, quantities, smooth, benchmarks))
    return figure


def fill(
    results: Results,
    runs: Sequence[Run],
    quantities: Sequence[Quantity],
    found: Mapping[Setting, Sequence[Axes]],
    looks: Looks,
    smooth: bool = True,
    benchmarks: Sequence[str] | None = None,
) -> None:
    """Draw quantities into panels: those of each setting, in the order of the quantities."""
    updates = results.study.study.updates
    groups = grouping.groups(runs)
    width = curves.window(updates) if smooth else 1
    accuracy = evaluations(results, groups, benchmarks) if ACCURACY in quantities else {}
    metrics = {group: _metrics(results, group, quantities, width) for group in groups}
    spread = SPREAD_OF_UNJOINED if _few_evaluations(results) else SPREAD_OF_POINTS
    margin = MARGIN + (spread / 2 if ACCURACY in quantities else 0)
    for setting, of_setting in found.items():
        over_updates(of_setting, updates, margin)
        shown = grouping.shown_in(setting, groups)
        lines = {group: looks.line(group, setting) for group in shown}
        for axes, quantity in zip(of_setting, quantities, strict=True):
            if quantity.column is None:
                of_shown = {group: accuracy[group] for group in shown}
                joined = not _few_evaluations(results)
                _draw_accuracy(axes, of_shown, lines, looks, joined, spread * updates)
                if not any(at for points in of_shown.values() for at in points):
                    tell_cells(results, axes, shown, benchmarks)
                continue
            for group, line in lines.items():
                curves.draw_curve(axes, metrics[group][quantity.column], line)
            if not any(metrics[group][quantity.column] for group in shown):
                paths = [results.metrics_path(run) for group in shown for run in group.runs]
                missing.tell(axes, "runs", paths)
    for position, quantity in enumerate(quantities):
        quantity.finish([of_setting[position] for of_setting in found.values()])
        if quantity is SCORE:
            _name_scores(results.study, runs, {s: axes[position] for s, axes in found.items()})


def tell_cells(
    results: Results,
    axes: Axes,
    shown: Sequence[Group],
    benchmarks: Sequence[str] | None = None,
    last: bool = False,
) -> None:
    """Say in a panel without points how many cells are missing: as `missing.cells` counts them."""
    study, runs = results.study, [run for group in shown for run in group.runs]
    start = [] if last else choices.baselines(study, runs)
    names = benchmarks or list(study.benchmarks)
    trained = choices.cells(study, runs, names, results.folder, last)
    of_start = choices.cells(study, start, names, results.folder) if trained else []
    missing.tell(axes, "cells", [*trained, *of_start])


def _name_scores(study: ResolvedStudy, runs: Sequence[Run], found: Mapping[Setting, Axes]) -> None:
    """Say at the axes of which models the score has a length penalty, where that changes."""
    before = ""
    for setting, axes in found.items():
        label = penalties.label(study, runs, setting.model, SCORE.label)
        if axes.get_ylabel() or label != before:
            axes.set_ylabel(label)
        before = label


def _draw_accuracy(
    axes: Axes,
    accuracy: Mapping[Group, Mapping[float, Point]],
    lines: Mapping[Group, dict[str, Any]],
    looks: Looks,
    joined: bool,
    spread: float,
) -> None:
    """Draw the points of each group beside each other, after the one that all of them start from.

    Args:
        axes: where to draw.
        accuracy: by group and update, in the order of the points.
        lines: of the groups.
        looks: gives the look of the start.
        joined: whether lines join the points of a group.
        spread: of the points of one update, in updates.
    """
    starts = [points[0] for points in accuracy.values() if 0 in points]
    for position, (group, points) in enumerate(accuracy.items()):
        shift = spread * ((position + 0.5) / len(accuracy) - 0.5)
        places = {at + shift if at else 0.0: e for at, e in points.items() if at or joined}
        draw_points(axes, places, lines[group], joined)
    if starts:
        draw_points(axes, {0.0: starts[0]}, looks.start(), joined=False)


def _metrics(
    results: Results, group: Group, quantities: Iterable[Quantity], width: int
) -> dict[str, Curve | None]:
    """Read the metrics of a group's runs, converted, smoothed and averaged over seeds."""
    of_metrics = {q.column: q for q in quantities if q.column is not None}
    read = [results.metrics(run, *of_metrics) for run in group.runs]
    there = [metrics for metrics in read if metrics is not None]
    return {
        column: curves.smoothed(
            [quantity.convert(metrics[column]) for metrics in there],
            width,
            group.staleness if quantity.by_batch else 1,
        )
        for column, quantity in of_metrics.items()
    }


def evaluations(
    results: Results, groups: Sequence[Group], benchmarks: Sequence[str] | None = None
) -> dict[Group, dict[float, Point]]:
    """Return the evaluated accuracy of groups by update: the mean over seeds and benchmarks.

    It begins at update 0 where the study evaluates the model as it comes.

    Raises:
        UserError: a damaged cell.
    """
    study = results.study
    means: dict[tuple[Group, float], Means] = {}
    for group in groups:
        for run in choices.baselines(study, list(group.runs)):
            means[group, 0] = problem_means(results, [run], 0, benchmarks)
        for update in study.checkpoints(group.runs[0]):
            means[group, update] = problem_means(results, group.runs, update, benchmarks)
    return estimates(groups, means)


def problem_means(
    results: Results,
    runs: Sequence[Run],
    update: int | None = None,
    benchmarks: Sequence[str] | None = None,
    k: int = 1,
) -> Means:
    """Return pass@k of each problem by benchmark: the mean over the runs that have all of them.

    It is partial where some of the runs that are evaluated do not.

    Args:
        results: the study's folder.
        runs: seeds of one method.
        update: the last evaluated one if left out.
        benchmarks: all of the study if left out.
        k: number of tries.
    """
    names = benchmarks or list(results.study.benchmarks)
    planned = missing.evaluated(results.study, runs)
    seeds = []
    for run in missing.complete(results, planned, names, update):
        cells = [results.cell(run, benchmark, update) for benchmark in names]
        solved = [cell.solved(k) for cell in cells if cell is not None]
        seeds.append([np.array([of[id_] for id_ in sorted(of)]) for of in solved])
    means = [np.mean(seed, axis=0) for seed in zip(*seeds, strict=True)]
    return Means(means, partial=len(seeds) < len(planned))


def estimates(
    groups: Iterable[Group], means: Mapping[tuple[Group, float], Means]
) -> dict[Group, dict[float, Point]]:
    """Return the macro averages with their errors, of the cluster bootstrap over problems.

    Args:
        groups: all have a place in what is returned.
        means: of problems, by group and position on the axis; empty where they are missing.
    """
    there = {key: mean for key, mean in means.items() if mean.of_benchmarks}
    bootstraps = cluster_bootstraps([m.of_benchmarks for m in there.values()]) if there else []
    found: dict[Group, dict[float, Point]] = {group: {} for group in groups}
    for ((group, x), mean), each in zip(there.items(), bootstraps, strict=True):
        found[group][x] = Point(each.macro, each.macro_standard_error, mean.partial)
    return found


def draw_points(
    axes: Axes, points: Mapping[float, Point], line: dict[str, Any], joined: bool = True
) -> None:
    """Draw points, by their place on the axis, with bars of one standard error.

    Points are hollow, and bars lie above them: those that are shorter than a point are seen in it.
    Points that are not joined are larger, since no line leads to them. Partial ones are marked.
    """
    if points:
        value, error, _ = zip(*points.values(), strict=True)
        bars: dict[str, Any] = {"marker": "o", "markersize": 4, "capsize": 2.5, "linewidth": 1.0}
        bars |= {"markerfacecolor": "white", "markeredgewidth": 0.9, "barsabove": True}
        alone = {} if joined else {"linestyle": "none", "markersize": 5.5}
        axes.errorbar(list(points), value, error, **(bars | line | {"linewidth": 1.0} | alone))
    for at, point in points.items():
        if point.partial:
            # Beside the point: above it, the mark would look like a part of the bar.
            beside: dict[str, Any] = {"xytext": (3, 0), "textcoords": "offset points"}
            place = (at, point.value)
            axes.annotate(PARTIAL, place, color=line["color"], fontsize=8, **beside)


def _few_evaluations(results: Results) -> bool:
    """Whether a line between the evaluated checkpoints would only suggest a course."""
    return len(results.study.study.evaluation.updates) < FEWEST_JOINED


def note(
    results: Results,
    runs: Sequence[Run],
    quantities: Sequence[Quantity],
    smooth: bool = True,
    benchmarks: Sequence[str] | None = None,
) -> str:
    """Say what was smoothed, what labels, bands and bars are, and what is missing."""
    updates = curves.window(results.study.study.updates)
    text = f"metrics: running mean over {updates} updates" if smooth else "not smoothed"
    if batches := [quantity.name for quantity in quantities if quantity.by_batch]:
        text += f", {' and '.join(batches)} over whole rollout batches"
    if SCORE in quantities:
        text += f"; {penalties.note(results.study, runs)}"
    text += curves.spread_note(runs)
    if ACCURACY in quantities:
        text += (
            f"; evaluation accuracy: mean of {named(results, benchmarks)}, bars ± 1 standard error "
            "over problems, points of one update beside each other in the order of the legend"
        )
        if _few_evaluations(results):
            text += f", not joined: fewer than {FEWEST_JOINED} checkpoints were evaluated"
    text += sweep_note(results.study, {run.method for run in runs})
    text += missing.runs(results, runs)
    if ACCURACY in quantities:
        shown = [*runs, *choices.baselines(results.study, runs)]
        text += missing.cells(results, shown, benchmarks or list(results.study.benchmarks))
    return text


def named(results: Results, benchmarks: Sequence[str] | None = None) -> str:
    """Return the labels of benchmarks, of all of the study if left out."""
    known = results.study.benchmarks
    return ", ".join(known[name].label for name in benchmarks or known)


def kl(results: Results) -> Quantity:
    """Return the KL divergence that a study's loss has, or else that from the sampling policy."""
    return REFERENCE_KL if results.study.study.kl_coefficient else KL
