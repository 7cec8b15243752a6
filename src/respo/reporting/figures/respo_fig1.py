"""Kernels: the coefficient against log W by sign of the advantage. ReSPO, Fig. 1."""

from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from respo.config.schema import Method
from respo.objectives import kernel
from respo.reporting import style
from respo.reporting.results import Results

LOG_W_RANGE = (-5.0, 5.0)
LARGEST_SHOWN = 3.0
NOTE = (
    f"c is shown up to {LARGEST_SHOWN:g}; dots mark the two sides of a jump; "
    "all ratios are those of a response of one token"
)
POINTS = 2001
# Two ends of a step closer than this are one point of a curve, not a jump.
_SMALLEST_JUMP = 1e-3


@dataclass(frozen=True)
class Curve:
    """A kernel with its jumps.

    log_w and coefficient hold NaN between the two sides of a jump, so that no line joins them;
    jumps holds (log W, coefficient on the left, coefficient on the right).
    """

    log_w: np.ndarray
    coefficient: np.ndarray
    jumps: list[tuple[float, float, float]]


def draw(results: Results) -> Figure:
    """Draw a panel per sign of the advantage, a line per method of the study."""
    methods = results.study.methods
    lines = style.lines(methods)
    figure = Figure(figsize=(7.0, 2.9), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    style.note(figure, NOTE)
    for axes, sign, title in zip(panels, (1, -1), ("A > 0", "A < 0"), strict=True):
        axes.axvline(0, color="#999999", linewidth=0.6, zorder=1)
        for name, method in methods.items():
            _draw_curve(axes, curve(method, sign), label=method.label, **lines[name])
        axes.set(title=title, xlabel="log W", xlim=LOG_W_RANGE, ylim=(-0.08, LARGEST_SHOWN))
    panels[0].set_ylabel("coefficient c")
    style.legend(figure, {method.label: lines[name] for name, method in methods.items()})
    return figure


def _draw_curve(axes: Axes, curve: Curve, **line: object) -> None:
    (drawn,) = axes.plot(curve.log_w, curve.coefficient, **line)  # type: ignore[arg-type]
    color = drawn.get_color()
    for log_w, left, right in curve.jumps:
        axes.plot([log_w, log_w], [left, right], "o", color=color, markersize=3, zorder=3)


def curve(method: Method, sign: int) -> Curve:
    """Evaluate a method's kernel for responses of one token and find its jumps.

    Args:
        method: objective and parameters.
        sign: +1 or -1, the sign of the advantage.
    """

    def coefficient(log_w: np.ndarray) -> np.ndarray:
        parameters = dict(method.parameters)
        return kernel(method.objective, torch.from_numpy(log_w), sign, **parameters).numpy()  # type: ignore[arg-type]

    log_w = np.linspace(*LOG_W_RANGE, POINTS)
    left, right = log_w[:-1].copy(), log_w[1:].copy()
    # Halve each interval towards the larger change: what remains in the end is a jump.
    for _ in range(40):
        middle = (left + right) / 2
        at_left, at_middle, at_right = coefficient(left), coefficient(middle), coefficient(right)
        leftwards = np.abs(at_middle - at_left) > np.abs(at_right - at_middle)
        left, right = np.where(leftwards, left, middle), np.where(leftwards, middle, right)
    before, after = coefficient(left), coefficient(right)
    jumps = np.flatnonzero(np.abs(after - before) > _SMALLEST_JUMP)
    # The two sides and the gap between them go in after the grid point on the left.
    sides = np.stack([left[jumps], np.full(len(jumps), np.nan), right[jumps]], axis=1).ravel()
    values = np.stack([before[jumps], np.full(len(jumps), np.nan), after[jumps]], axis=1).ravel()
    at = np.repeat(jumps + 1, 3)
    return Curve(
        np.insert(log_w, at, sides),
        np.insert(coefficient(log_w), at, values),
        [(float(right[i]), float(before[i]), float(after[i])) for i in jumps],
    )
