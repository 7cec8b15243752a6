"""Bins of response length that all methods share (ReSPO, App. E.2)."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class BinAccuracy(NamedTuple):
    """Responses by group G and bin Q, and the share of them that is correct: NaN for none."""

    responses_GQ: np.ndarray
    accuracy_GQ: np.ndarray


def length_bounds(tokens: ArrayLike, limit: int, bins: int = 10) -> np.ndarray:
    """Return the upper bound of each bin in tokens, shape (bins,), int64; a bin holds its bound.

    Responses at the limit form the last bin, exactly. The others are pooled and divided into bins
    of equal frequency: the bound of bin q of Q is the smallest length that at least q / Q of them
    do not exceed. Equal lengths are therefore never split. Where one length takes the share of
    several bins, these have the same bound; the first of them holds it and the others stay empty.

    Args:
        tokens: lengths of all responses, of all methods and benchmarks.
        limit: the most tokens a response can have.
        bins: number of bins, that of the limit included.

    Raises:
        ValueError: no response, fewer than 2 bins, or a length that no response has.
    """
    if bins < 2:
        raise ValueError(f"there are at least 2 bins, that of the limit included, not {bins}")
    tokens_B = _lengths(tokens, limit)
    if not tokens_B.size:
        raise ValueError("no response to make length bins of")
    uncapped_B = np.sort(tokens_B[tokens_B < limit])
    if not uncapped_B.size:  # the first bin would hold any of them
        uncapped_B = np.array([limit - 1])
    # Whole numbers: the ceiling of q * n / Q must not depend on rounding.
    rank_Q = -(-np.arange(1, bins) * uncapped_B.size // (bins - 1)) - 1
    return np.append(uncapped_B[rank_Q], limit)


def length_bin(tokens: ArrayLike, upper_Q: ArrayLike) -> np.ndarray:
    """Return the bin of each response, 0-based, from the bounds of `length_bounds`.

    Responses at the limit belong to the last bin; of the others, those that exceed all bounds,
    which no pooled one does, to the last but one.

    Raises:
        ValueError: a length that no response has.
    """
    upper_Q = np.asarray(upper_Q)
    tokens_B = _lengths(tokens, upper_Q[-1])
    return np.where(
        tokens_B == upper_Q[-1], upper_Q.size - 1, np.searchsorted(upper_Q[:-2], tokens_B)
    )


def accuracy_by_bin(
    bin_index: ArrayLike, correct: ArrayLike, group: ArrayLike, bins: int, groups: int
) -> BinAccuracy:
    """Count the responses of each group and bin, and the share of them that is correct.

    Args:
        bin_index: of each response, 0-based.
        correct: whether each response is.
        group: 0-based index of each response's group: its method, or method and benchmark.
        bins: number of bins.
        groups: number of groups.

    Raises:
        ValueError: the arrays differ in length, or an index is out of range.
    """
    bin_B, correct_B, group_B = np.asarray(bin_index), np.asarray(correct), np.asarray(group)
    if not bin_B.shape == correct_B.shape == group_B.shape or bin_B.ndim != 1:
        raise ValueError("each response needs a bin, a verdict and a group")
    for index_B, count in ((bin_B, bins), (group_B, groups)):
        if index_B.size and not 0 <= index_B.min() <= index_B.max() < count:
            raise ValueError(f"bins and groups are counted from 0 to {count - 1}")
    cell_B = group_B.astype(np.int64) * bins + bin_B
    responses_GQ = np.bincount(cell_B, minlength=groups * bins).reshape(groups, bins)
    correct_GQ = np.bincount(cell_B, weights=correct_B, minlength=groups * bins)
    with np.errstate(invalid="ignore"):  # 0 / 0
        accuracy_GQ = correct_GQ.reshape(groups, bins) / responses_GQ
    return BinAccuracy(responses_GQ, accuracy_GQ)


def error_by_bin(
    bin_index: ArrayLike,
    correct: ArrayLike,
    group: ArrayLike,
    cluster: ArrayLike,
    bins: int,
    groups: int,
) -> np.ndarray:
    """Return the standard error of each accuracy of `accuracy_by_bin`, shape (groups, bins).

    Problems are drawn, not responses: those of a problem stay together. With y_p correct of the n_p
    responses of problem p in a bin and accuracy a, the variance is G / (G - 1) times the sum of
    (y_p - a n_p)^2, by the square of the bin's responses: the linearised variance of a ratio
    estimate with G clusters (Cochran, Sampling Techniques, 1977, Ch. 6 and 9A). NaN where all
    responses of a bin are of one problem.

    Args:
        bin_index: as in `accuracy_by_bin`, as are the others.
        correct: of each response.
        group: of each response.
        cluster: number of each response's problem; those of other benchmarks have other numbers.
        bins: number of bins.
        groups: number of groups.

    Raises:
        ValueError: as for `accuracy_by_bin`.
    """
    count_GQ, accuracy_GQ = accuracy_by_bin(bin_index, correct, group, bins, groups)
    cell_B = np.asarray(group).astype(np.int64) * bins + np.asarray(bin_index)
    cluster_B = np.unique(np.asarray(cluster), return_inverse=True)[1]
    if cluster_B.shape != cell_B.shape:
        raise ValueError("each response needs a cluster")
    clusters = int(cluster_B.max(initial=0)) + 1
    key_K, key_B = np.unique(cell_B * clusters + cluster_B, return_inverse=True)
    residual_B = np.asarray(correct) - accuracy_GQ.ravel()[cell_B]
    residual_K, cell_K = np.bincount(key_B, residual_B), key_K // clusters
    size = groups * bins
    total = np.bincount(cell_K, residual_K**2, minlength=size).reshape(groups, bins)
    several = np.bincount(cell_K, minlength=size).reshape(groups, bins)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.sqrt(total * several / (several - 1)) / count_GQ


def _lengths(tokens: ArrayLike, limit: int) -> np.ndarray:
    tokens_B = np.asarray(tokens, dtype=np.int64)
    if tokens_B.ndim != 1 or np.any((tokens_B < 0) | (tokens_B > limit)):
        raise ValueError(f"lengths lie between 0 and the limit of {limit} tokens")
    return tokens_B
