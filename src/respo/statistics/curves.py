"""Summaries of a training curve (ReSPO, Sec. 4 and App. E.4).

A curve is given by its points: update (1-based, increasing) and value.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Late(NamedTuple):
    """Mean over the last updates and the standard deviation in time within the run."""

    mean: float
    temporal_sd: float


def accuracy_of_score(score: ArrayLike) -> np.ndarray:
    """Map a mean signed reward in [-1, 1] to [0, 1]: (score + 1) / 2."""
    return (np.asarray(score, dtype=np.float64) + 1.0) / 2.0


def early_peak(update: ArrayLike, value: ArrayLike, until: int = 256) -> float:
    """Return the largest value at the updates 1 to ``until``.

    Raises:
        ValueError: there is no such point, or the points are no curve.
    """
    return float(_points(update, value, -np.inf, until, at_least=1)[1].max())


def late_score(update: ArrayLike, value: ArrayLike, start: int = 896, end: int = 1024) -> Late:
    """Return the trapezoidal mean over the updates ``start`` to ``end`` and its deviation in time.

    The mean weights by distance in updates, so that it does not depend on how densely a curve was
    recorded. The standard deviation is that of the points themselves (ddof 0).

    Raises:
        ValueError: there are fewer than two such points, or the points are no curve.
    """
    x, y = _points(update, value, start, end, at_least=2)
    return Late(float(np.trapezoid(y, x) / (x[-1] - x[0])), float(y.std()))


def _points(
    update: ArrayLike, value: ArrayLike, start: float, end: float, at_least: int
) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(update, dtype=np.float64), np.asarray(value, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or np.any(np.diff(x) <= 0):
        raise ValueError("a curve needs as many values as updates, and the updates increasing")
    inside = (x >= start) & (x <= end)
    if inside.sum() < at_least:
        raise ValueError(
            f"the curve has {inside.sum()} points between {start:g} and {end:g}, "
            f"but {at_least} are needed"
        )
    return x[inside], y[inside]
