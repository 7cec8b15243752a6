"""Accuracy by response length: of all benchmarks together, and of each (ReSPO, App. E.2)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from respo.reporting import grouping, missing
from respo.reporting.curves import Looks
from respo.reporting.grouping import Group, Setting
from respo.reporting.results import Results
from respo.statistics import BinAccuracy, accuracy_by_bin, error_by_bin, length_bin, length_bounds

BINS = 10
BIN = np.arange(1, BINS + 1)
TICKS = (1, 3, 5, 7)
# The accuracy of fewer responses is left out: it would jump between 0 and 1.
FEWEST = 10
NOTE = (
    "bins 1 to 9: the responses of a model and N, all methods and benchmarks together, by "
    "increasing length, in parts as equal as can be where equal lengths stay together, so that "
    "some may be empty; cap: those cut at the length limit"
)
LEFT_OUT = (
    "on-policy runs (N = 1) have no line over length bins: bins are those of one N, and the "
    "responses of another N would be in others"
)
BAND = (
    "band (bar of a point alone) of the accuracy by length: ± 1 standard error over problems, "
    f"whose responses are kept together; a point needs {FEWEST} responses, to more than one "
    "problem; lines break where there is none"
)


class Binned(NamedTuple):
    """Accuracy by bin and its standard error, a row per group; NaN where there is no response."""

    responses_GQ: np.ndarray
    accuracy_GQ: np.ndarray
    error_GQ: np.ndarray


@dataclass(frozen=True)
class Responses:
    """The responses of one model at one N, those of all seeds, in bins that all of them share."""

    upper_Q: np.ndarray
    bin_B: np.ndarray
    correct_B: np.ndarray
    group_B: np.ndarray
    benchmark_B: np.ndarray
    problem_B: np.ndarray
    groups: int

    def binned(self, benchmark: int | None = None) -> Binned:
        """Return the accuracy by group and bin, of one benchmark or of all together."""
        chosen = slice(None) if benchmark is None else self.benchmark_B == benchmark
        bins, correct, group = self.bin_B[chosen], self.correct_B[chosen], self.group_B[chosen]
        # A problem is a cluster within its benchmark.
        cluster = self.problem_B[chosen] * (self.benchmark_B.max() + 1) + self.benchmark_B[chosen]
        found: BinAccuracy = accuracy_by_bin(bins, correct, group, BINS, self.groups)
        error_GQ = error_by_bin(bins, correct, group, cluster, BINS, self.groups)
        return Binned(*found, error_GQ)


def read(results: Results, groups: Sequence[Group]) -> Responses | None:
    """Read the scored responses of groups of one model and N; None where there are none.

    Raises:
        UserError: a damaged file.
    """
    study = results.study
    limits = {
        name: study.sampling(name, group.model).max_response_tokens
        for group in groups
        for name in study.benchmarks
    }
    cap = max(limits.values(), default=0)
    parts = []
    for position, group in enumerate(groups):
        for index, benchmark in enumerate(study.benchmarks):
            for run in group.runs:
                there = results.responses(run, benchmark)
                if there is None:
                    continue
                tokens = there["response_tokens"]
                # Benchmarks may differ in their limits: what is cut at any of them is in one bin.
                tokens = np.where(tokens >= limits[benchmark], cap, tokens)
                same = np.full(tokens.size, position), np.full(tokens.size, index)
                parts.append((tokens, there["correct"], *same, there["problem"]))
    if not parts:
        return None
    tokens, correct, group_B, benchmark_B, problem = map(np.concatenate, zip(*parts, strict=True))
    upper_Q = length_bounds(tokens, cap, BINS)
    bin_B = length_bin(tokens, upper_Q)
    return Responses(upper_Q, bin_B, correct, group_B, benchmark_B, problem, len(groups))


def draw(axes: Axes, binned: Binned, lines: Sequence[dict[str, Any]]) -> None:
    """Draw a line and a band per group, broken at bins with too few responses.

    Between two such bins there is no band: a point alone has a bar.

    Args:
        axes: where to draw.
        binned: accuracy by group.
        lines: one per group.
    """
    for number_Q, accuracy_Q, error_Q, line in zip(*binned, lines, strict=True):
        there_Q = (number_Q >= FEWEST) & np.isfinite(error_Q)
        accuracy, error = (np.where(there_Q, v, np.nan) for v in (accuracy_Q, error_Q))
        axes.plot(BIN, accuracy, marker="o", markersize=2.5, **line)
        low, high = np.clip([accuracy - error, accuracy + error], 0, 1)
        axes.fill_between(BIN, low, high, color=line["color"], alpha=0.15, linewidth=0)
        beside = np.pad(there_Q, 1)
        alone = there_Q & ~beside[:-2] & ~beside[2:]
        axes.vlines(BIN[alone], low[alone], high[alone], color=line["color"], linewidth=0.8)


def fill(
    results: Results,
    setting: Setting,
    groups: Iterable[Group],
    panels: Sequence[tuple[Axes, int | None]],
    looks: Looks,
) -> None:
    """Draw the methods of one model and N into panels.

    Args:
        results: the study's folder.
        setting: the model and N.
        groups: among them those of the setting; on-policy runs beside it are left out.
        panels: each with the position of its benchmark, or None for all together.
        looks: gives the lines.
    """
    shown = grouping.shown_in(setting, groups)
    own = [group for group in shown if not group.is_reference_in(setting)]
    lines = [looks.line(group, setting) for group in own]
    responses = read(results, own)
    for axes, benchmark in panels:
        axes.set(xlim=(0.6, BINS + 0.4), xlabel="length bin")
        axes.set_xticks([*TICKS, BINS], [*map(str, TICKS), "cap"])
        if responses is not None:
            draw(axes, responses.binned(benchmark), lines)
        if not any(np.isfinite(line.get_ydata()).any() for line in axes.lines):
            _tell(results, axes, own, benchmark)


def _tell(results: Results, axes: Axes, own: Sequence[Group], benchmark: int | None) -> None:
    """Say in a panel without a line what is missing: files, or enough responses."""
    runs = [run for group in own for run in group.runs]
    names = list(results.study.benchmarks)
    chosen = names if benchmark is None else [names[benchmark]]
    paths = missing.score_files(results, runs, chosen)
    if paths and all(path.is_file() for path in paths):
        missing.say(axes, f"no bin has {FEWEST} responses to two problems")
    else:
        missing.tell(axes, "files of scores", paths)


def note(results: Results, groups: Sequence[Group]) -> str:
    """Say what bins and bands are, which runs are left out, and which files are missing."""
    runs = [run for group in groups for run in group.runs]
    settings = grouping.settings(runs)
    off_policy = [setting.model for setting in settings if setting.staleness > 1]
    beside = any(group.staleness == 1 and group.model in off_policy for group in groups)
    left_out = f"; {LEFT_OUT}" if beside else ""
    return f"{NOTE}{left_out}; {BAND}{missing.scores(results, runs)}"
