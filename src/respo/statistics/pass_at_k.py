"""How many problems are solved: pass@1, which is avg@K, and pass@k."""

import numpy as np
from numpy.typing import ArrayLike


def pass_at_1(correct_P: ArrayLike, samples_P: ArrayLike) -> float:
    """Mean over problems of the share of correct samples, in [0, 1] (ReSPO, App. D.2).

    Each problem has the same weight, however many samples it has.

    Raises:
        ValueError: no problem, or counts that cannot be.
    """
    c, n = _counts(correct_P, samples_P)
    if c.ndim != 1 or not c.size:
        raise ValueError(f"pass@1 needs one count per problem, not an array of shape {c.shape}")
    return float(np.mean(c / n))


def pass_at_k(n: ArrayLike, c: ArrayLike, k: int) -> np.ndarray:
    """Unbiased estimate of the chance that one of k samples is correct, for each problem.

    ``1 - C(n-c, k) / C(n, k)`` (Chen et al., 2021, Eq. 1), as a product, which cannot overflow. The
    benchmark's pass@k is the mean over its problems. For k = n it is "any sample correct".

    Args:
        n: samples, any shape.
        c: correct samples, of a shape that goes with that of ``n``.
        k: number of tries.

    Raises:
        ValueError: ``k`` exceeds a number of samples, or counts that cannot be.
    """
    correct, samples = _counts(c, n)
    if k < 1 or (samples.size and k > samples.min()):
        raise ValueError(f"pass@{k} needs at least 1 try and {k} samples per problem")
    wrong = samples - correct
    all_wrong = np.ones(samples.shape)
    for drawn in range(k):
        all_wrong *= np.maximum(wrong - drawn, 0) / (samples - drawn)
    return 1.0 - all_wrong


def _counts(correct: ArrayLike, samples: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    c, n = np.broadcast_arrays(np.asarray(correct), np.asarray(samples))
    if np.any(n < 1) or np.any(c < 0) or np.any(c > n):
        raise ValueError("each problem needs at least one sample, and 0 to that many correct ones")
    return c, n
