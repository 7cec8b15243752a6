"""Agreement across seeds."""

import numpy as np
from numpy.typing import ArrayLike


def across_seeds(values: ArrayLike) -> tuple[float, float]:
    """Return mean and population standard deviation (ddof 0) of one value per seed.

    Raises:
        ValueError: no value.
    """
    values_S = np.asarray(values, dtype=np.float64)
    if not values_S.size:
        raise ValueError("no seed to average over")
    return float(values_S.mean()), float(values_S.std())
