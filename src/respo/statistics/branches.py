"""What an objective gives to the responses of one sign of the advantage (ReSPO, App. E.3).

The trainer records sums by policy update, sign and bin of log W. They are added up, over updates
and where wanted over bins, before anything is divided. Axes: R recorded rows of one sign,
T rollout batches, N bins, X any axes before that of the bins.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Branch(NamedTuple):
    """The bins of one sign of the advantage.

    share_XN: p, share of the responses. mass_share_XN: m, share of the coefficient mass |A| c.
    amplification_XN: m / p. mean_tokens_XN: mean length of a response, and branch_mean_tokens_X
    that of all bins together. length_ratio_XN: one by the other. What cannot be divided is NaN: in
    an empty bin all but its shares, which are 0; all of it in an empty branch.
    """

    responses_XN: np.ndarray
    share_XN: np.ndarray
    mass_share_XN: np.ndarray
    amplification_XN: np.ndarray
    mean_tokens_XN: np.ndarray
    branch_mean_tokens_X: np.ndarray
    length_ratio_XN: np.ndarray


def branch_shares(responses: ArrayLike, coefficient_mass: ArrayLike, tokens: ArrayLike) -> Branch:
    """Return shares, amplification and lengths from sums by bin, the last axis of each array.

    For a wider bin, add up the sums of its bins first (``np.add.reduceat``).

    Args:
        responses: number of responses.
        coefficient_mass: sum of |A| c over them.
        tokens: sum of their lengths.

    Raises:
        ValueError: the arrays differ in shape.
    """
    responses_XN = np.asarray(responses)
    mass_XN, tokens_XN = np.asarray(coefficient_mass), np.asarray(tokens)
    if not responses_XN.shape == mass_XN.shape == tokens_XN.shape or not responses_XN.ndim:
        raise ValueError("responses, coefficient mass and tokens need the same bins")
    of_branch_X1 = responses_XN.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        share_XN = responses_XN / of_branch_X1
        mass_share_XN = mass_XN / mass_XN.sum(axis=-1, keepdims=True)
        mean_tokens_XN = tokens_XN / responses_XN
        branch_mean_X1 = tokens_XN.sum(axis=-1, keepdims=True) / of_branch_X1
        return Branch(
            responses_XN,
            share_XN,
            mass_share_XN,
            mass_share_XN / share_XN,
            mean_tokens_XN,
            branch_mean_X1[..., 0],
            mean_tokens_XN / branch_mean_X1,
        )


def sum_by_batch(
    rollout_batch: ArrayLike, bin_index: ArrayLike, values: ArrayLike, bins: int
) -> tuple[np.ndarray, np.ndarray]:
    """Add up what was recorded in each rollout batch and bin, over its policy updates.

    Args:
        rollout_batch: of each row.
        bin_index: of each row, 0-based.
        values: what is added up: responses, coefficient mass or tokens of one sign.
        bins: number of bins.

    Returns:
        The rollout batches in increasing order, shape (T,), and the sums, shape (T, N).

    Raises:
        ValueError: the arrays differ in length, or a bin is out of range.
    """
    bin_R, values_R = np.asarray(bin_index), np.asarray(values)
    batch_T, batch_R = np.unique(np.asarray(rollout_batch), return_inverse=True)
    if not batch_R.shape == bin_R.shape == values_R.shape or bin_R.ndim != 1:
        raise ValueError("each row needs a rollout batch, a bin and a value")
    if bin_R.size and not 0 <= bin_R.min() <= bin_R.max() < bins:
        raise ValueError(f"bins are counted from 0 to {bins - 1}")
    sum_TN = np.zeros((batch_T.size, bins), dtype=values_R.dtype)
    np.add.at(sum_TN, (batch_R, bin_R), values_R)
    return batch_T, sum_TN


def mean_by_batch(rollout_batch: ArrayLike, values: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Average a metric over the policy updates of each rollout batch, which weigh the same.

    For the mean of log W this is that of all responses of the rollout batch, since its mini-batches
    have as many each.

    Returns:
        The rollout batches in increasing order and the means, both of shape (T,).

    Raises:
        ValueError: the arrays differ in length.
    """
    batch = np.asarray(rollout_batch)
    zeros, ones = np.zeros(batch.shape, dtype=np.int64), np.ones(batch.shape)
    batch_T, total_T1 = sum_by_batch(batch, zeros, np.asarray(values, dtype=np.float64), bins=1)
    return batch_T, total_T1[:, 0] / sum_by_batch(batch, zeros, ones, bins=1)[1][:, 0]
