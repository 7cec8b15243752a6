"""What a figure lacks: in its small print, and in the panels that are empty for it.

A mean over fewer seeds than planned is drawn, and told: points bear the mark that tables have.
"""

import textwrap
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes

from respo.config import Run
from respo.config.study import ResolvedStudy
from respo.reporting import choices, grouping, labels
from respo.reporting.grouping import Group
from respo.reporting.layout import PARTIAL
from respo.reporting.results import Results

NAMED = 4
PANEL_WIDTH = 22  # characters of the text in an empty panel


def runs(results: Results, shown: Sequence[Run]) -> str:
    """Name the runs without metrics, and the lines that are means of some of the seeds alone."""
    there = {run for run in shown if results.metrics_path(run).is_file()}
    absent = [run.name for run in shown if run not in there]
    lines = [
        _of_seeds(results.study, group, len(there.intersection(group.runs)))
        for group in grouping.groups(shown)
    ]
    text = named("runs", absent, len(shown))
    return text + _listed("lines of some of the seeds alone", [line for line in lines if line])


def cells(
    results: Results, shown: Sequence[Run], benchmarks: Sequence[str], last: bool = False
) -> str:
    """Name the cells that are missing, and the points that are means of some of the seeds alone.

    Args:
        results: the study's folder.
        shown: runs and models as they come, in the order of the study; some may not be evaluated.
        benchmarks: whose mean a point is.
        last: of the last checkpoint alone.
    """
    study, points = results.study, []
    for group in grouping.groups(evaluated(study, shown)):
        for update in study.checkpoints(group.runs[0])[-1 if last else 0 :]:
            found = complete(results, group.runs, benchmarks, update)
            text = _of_seeds(study, group, len(found), f", update {update:,}")
            points += [text] if text else []
    paths = choices.cells(study, shown, benchmarks, results.folder, last)
    marked = _listed(f"{PARTIAL} of some of the seeds alone", points)
    return _files(results, "cells", paths) + marked


def scores(results: Results, shown: Sequence[Run]) -> str:
    """Name the files of scores that are missing, of the runs that are evaluated."""
    return _files(results, "files of scores", score_files(results, shown))


def score_files(
    results: Results, shown: Sequence[Run], benchmarks: Sequence[str] | None = None
) -> list[Path]:
    """Return the verdicts on the last checkpoints of runs, of all benchmarks if left out."""
    names = benchmarks or list(results.study.benchmarks)
    found = choices.cells(results.study, shown, names, results.folder, last=True)
    return [path.with_name("scores.parquet") for path in found]


def evaluated(study: ResolvedStudy, shown: Sequence[Run]) -> list[Run]:
    """Return those of some runs that are evaluated."""
    found = set(study.evaluated())
    return [run for run in shown if run in found]


def complete(
    results: Results, seeds: Sequence[Run], benchmarks: Sequence[str], update: int | None = None
) -> list[Run]:
    """Return the runs that have the cells of all benchmarks at an update, the last if left out."""
    return [
        run
        for run in seeds
        if all(results.cell_path(run, name, update).is_file() for name in benchmarks)
    ]


def named(what: str, absent: Sequence[str], of: int) -> str:
    """Name what is missing, on a line of its own; nothing if all is there."""
    if not absent:
        return ""
    return _listed(f"{len(absent)} of {of} {what} missing", absent, ", ", " and ")


def tell(axes: Axes, what: str, paths: Sequence[Path]) -> None:
    """Say in an empty panel how many of its files are missing."""
    absent = sum(not path.is_file() for path in paths)
    say(axes, f"{absent} of {len(paths)} {what} missing" if paths else "not evaluated")


def say(axes: Axes, why: str) -> None:
    """Say in an empty panel why it is."""
    text = textwrap.fill(why, PANEL_WIDTH)
    axes.text(0.5, 0.12, text, transform=axes.transAxes, ha="center", fontsize=7, color="#555555")


def _of_seeds(study: ResolvedStudy, group: Group, there: int, where: str = "") -> str:
    """Say how many seeds a mean is of; nothing if of all, or if it is missing."""
    if there in (0, len(group.runs)):
        return ""
    model, n = study.models[group.model].label, f"N = {group.staleness}"
    return f"{model}, {n}, {labels.method(study, group)}{where}: {there} of {len(group.runs)}"


def _files(results: Results, what: str, paths: Sequence[Path]) -> str:
    absent = [path for path in paths if not path.is_file()]
    names = [path.relative_to(results.folder).as_posix() for path in absent]
    return named(what, names, len(paths))


def _listed(
    head: str, items: Sequence[str], between: str = "; ", before_more: str = "; and "
) -> str:
    if not items:
        return ""
    more = f"{before_more}{len(items) - NAMED} more" if len(items) > NAMED else ""
    return f"\n{head}: {between.join(items[:NAMED])}{more}"
