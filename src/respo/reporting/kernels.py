"""Coefficients as data of pictures: against log W, and against (pi_old, pi)."""

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.axes import Axes

from respo.config.schema import Method
from respo.objectives import kernel, needs, surface
from respo.objectives.one_token import ENTROPY, PROB_OLD
from respo.objectives.registry import get

SIGNS = {1: "A > 0", -1: "A < 0"}
LOG_W_RANGE = (-5.0, 5.0)
# Above the dual clip's 3, so that a curve that stays there is seen; where curves stay higher, the
# axis ends above them, but not beyond the second of the two.
SHOWN, LARGEST_SHOWN = 3.5, 6.0
POINTS = 2001
# pi and pi_old of a surface, in (0, 1). No quotient of two of them is a simple fraction: bounds of
# the ratio lie between points, where no rounding decides on which side.
PROB = (np.arange(240) + 0.4871) / 240
# Two ends of a step closer than this are one point of a curve, not a jump.
_SMALLEST_JUMP = 1e-3


@dataclass(frozen=True)
class Curve:
    """A kernel with its jumps.

    log_w and coefficient hold NaN between the two sides of a jump, so that no line joins them;
    jumps holds (log W, coefficient on the left, coefficient on the right). ends tells that there is
    no log W beyond the last, since pi cannot exceed 1.
    """

    log_w: np.ndarray
    coefficient: np.ndarray
    jumps: list[tuple[float, float, float]]
    ends: bool


def depends_on_probability(method: Method) -> bool:
    """Tell whether more than the ratio of the two probabilities matters."""
    # Not `needs`: what only the sums over a mini-batch depend on is not seen here.
    inputs = get(method.objective).inputs
    return "old_log_prob_BT" in inputs or "log_prob_BT" in inputs


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
    ends = depends_on_probability(method)
    if ends:
        limit = -math.log(PROB_OLD)
        log_w = np.append(log_w[log_w < limit], limit)
    values = coefficient(log_w)
    left, right, before, after = log_w[:-1], log_w[1:], values[:-1], values[1:]
    # Halve each interval towards the larger change: what remains in the end is a jump.
    for _ in range(40):
        middle = (left + right) / 2
        at_middle = coefficient(middle)
        leftwards = np.abs(at_middle - before) > np.abs(after - at_middle)
        left, right = np.where(leftwards, left, middle), np.where(leftwards, middle, right)
        before = np.where(leftwards, before, at_middle)
        after = np.where(leftwards, at_middle, after)
    jumps = np.flatnonzero(np.abs(after - before) > _SMALLEST_JUMP)
    # The two sides and the gap between them go in after the grid point on the left.
    gap = np.full(len(jumps), np.nan)
    at = np.repeat(jumps + 1, 3)
    return Curve(
        np.insert(log_w, at, np.stack([left[jumps], gap, right[jumps]], axis=1).ravel()),
        np.insert(values, at, np.stack([before[jumps], gap, after[jumps]], axis=1).ravel()),
        [(float(right[i]), float(before[i]), float(after[i])) for i in jumps],
        ends,
    )


def top(curves: Iterable[Curve]) -> float:
    """Return where the axis of c ends, so that a level at which a curve stays is seen."""
    levels = [0.0]
    for curve in curves:
        c = curve.coefficient
        stays = (np.abs(np.diff(c)) < 1e-9) & (np.diff(curve.log_w) > 0)
        levels += c[:-1][stays & (1.1 * c[:-1] < LARGEST_SHOWN)].tolist()
    return max(SHOWN, round(1.1 * max(levels), 1))


def draw_curve(axes: Axes, curve: Curve, **line: object) -> None:
    """Draw a kernel: dots are the sides of a jump, a bar is the end of what can be."""
    (drawn,) = axes.plot(curve.log_w, curve.coefficient, **line)  # type: ignore[arg-type]
    marks = {"color": drawn.get_color(), "zorder": drawn.get_zorder() + 1}
    for log_w, left, right in curve.jumps:
        axes.plot([log_w, log_w], [left, right], "o", markersize=3, **marks)  # type: ignore[arg-type]
    if curve.ends:
        axes.plot(curve.log_w[-1], curve.coefficient[-1], "|", markersize=7, **marks)  # type: ignore[arg-type]


def frame(axes: Axes, sign: int, end: float) -> None:
    """Prepare the axes of kernels; `end` is the largest c that they show."""
    axes.axvline(0, color="#999999", linewidth=0.6, zorder=1)
    axes.set(title=SIGNS[sign], xlabel="log W", xlim=LOG_W_RANGE, ylim=(-0.1, end))


def coefficient_surface(method: Method, sign: int) -> np.ndarray:
    """Evaluate c at `PROB` x `PROB`: a row per pi, a column per pi_old."""
    prob = torch.from_numpy(PROB)
    return surface(method.objective, prob, prob, sign, **method.parameters).numpy()


def assumptions(methods: Iterable[Method]) -> str:
    """Say what pictures of these methods hold fixed; nothing if it does not matter to them."""
    methods = list(methods)

    def labels(tensor: str) -> str:
        return ", ".join(m.label for m in methods if tensor in needs(m.objective))

    texts = []
    if entropy := labels("entropy_BT"):
        texts.append(f"; entropy {ENTROPY:g} nat: {entropy}")
    if adaptive := labels("batch_sums"):
        texts.append(f"; before anything is adapted to a mini-batch: {adaptive}")
    return "".join(texts)


def digest(arrays: Iterable[np.ndarray]) -> str:
    """Return 12 hex digits that identify drawn data to four decimals, the same on all platforms."""
    hash_ = hashlib.sha256()
    for values in arrays:
        # Shifted a little: a value such as 0.00125 is not at the border of two roundings.
        whole = np.rint((np.nan_to_num(values, nan=-1e6) + 3.7e-6) * 1e4).astype("<i8")
        hash_.update(whole.tobytes())
    return hash_.hexdigest()[:12]
