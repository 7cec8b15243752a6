"""BAPO: GRPO whose clip bounds widen until positive responses have their share of the loss."""

from typing import Annotated

import torch
from torch import Tensor

from respo.objectives.parameters import Range, UnitInterval
from respo.objectives.registry import objective

# Bounded and not too fine, so that no grid of bounds becomes huge.
HighBound = Annotated[float, Range(low=1, high=100)]
Step = Annotated[float, Range(low=0.001)]


def bapo_sums(
    log_ratio_BT: Tensor,
    advantage_B1: Tensor,
    mask_BT: Tensor,
    old_log_prob_BT: Tensor,
    *,
    target: UnitInterval = 0.4,
    high_start: HighBound = 1.2,
    high_max: HighBound = 3.0,
    high_step: Step = 0.05,
    low_start: UnitInterval = 0.6,
    low_max: UnitInterval = 0.9,
    low_step: Step = 0.02,
) -> Tensor:
    """Return the sum of pi_old * A * min(r, high) over A > 0 for every high, and then the sum of
    pi_old * |A| * max(r, low_start) over A < 0."""
    ratio_BT, mass_BT = log_ratio_BT.exp(), old_log_prob_BT.exp() * advantage_B1.abs()

    def tokens(of_sign_B1: Tensor) -> tuple[Tensor, Tensor]:
        keep_BT = mask_BT & of_sign_B1
        return ratio_BT.masked_select(keep_BT).double(), mass_BT.masked_select(keep_BT).double()

    highs = _bounds(high_start, high_max, high_step, advantage_B1)
    pos = _sums_of_minimum(*tokens(advantage_B1 > 0), highs)
    ratio, mass = tokens(advantage_B1 < 0)
    neg = (mass * ratio.clamp(min=low_start)).sum()
    return torch.cat((pos, neg.unsqueeze(0)))


@objective("bapo", sums=bapo_sums)
def bapo(
    log_ratio_BT: Tensor,
    advantage_B1: Tensor,
    batch_sums: Tensor,
    *,
    target: UnitInterval = 0.4,
    high_start: HighBound = 1.2,
    high_max: HighBound = 3.0,
    high_step: Step = 0.05,
    low_start: UnitInterval = 0.6,
    low_max: UnitInterval = 0.9,
    low_step: Step = 0.02,
) -> Tensor:
    """Return r, 0 where A > 0 and r > high, or A < 0 and r < low, with bounds of the mini-batch.

    From their starts, first high and then low are raised step by step up to their maxima until the
    positive share of the clipped surrogate reaches the target:

        P / (P + N) >= target,  P, N = sum of pi_old * |min(r A, clip(r, low, high) A)| by sign of A

    BAPO (Xi et al. 2025, arXiv 2510.18927). MASPO, Sec. 3, prints the condition with the sum over
    positive advantages below the line, which no share can be. Raising low lifts the value of the
    negative tokens that it clips and so never the share: where the highest high does not reach the
    target, low goes to its maximum. A mini-batch without any loss keeps the starts, and so does a
    bound whose maximum is not above its start. The authors' public code raises low first, compares
    P / N with the target, leaves out pi_old and adds a dual clip at 3; the paper is followed.
    """
    highs = _bounds(high_start, high_max, high_step, batch_sums)
    if len(batch_sums) != len(highs) + 1:
        raise ValueError(f"bapo: {len(batch_sums)} batch_sums, expected {len(highs) + 1}")
    pos, neg = batch_sums[:-1], batch_sums[-1]
    reached = pos >= target * (pos + neg)
    if reached.any():
        high, low = highs[reached.int().argmax()], batch_sums.new_tensor(low_start)
    else:
        high, low = highs[-1], _bounds(low_start, low_max, low_step, batch_sums)[-1]
    ratio_BT = log_ratio_BT.exp()
    clipped_pos_BT = (advantage_B1 > 0) & (ratio_BT > high)
    clipped_neg_BT = (advantage_B1 < 0) & (ratio_BT < low)
    return torch.where(clipped_pos_BT | clipped_neg_BT, 0.0, ratio_BT)


def _bounds(start: float, maximum: float, step: float, like: Tensor) -> Tensor:
    """Return start, start + step, ... up to and including the maximum, float64."""
    # The slack is for divisions that come out a rounding error below a whole number.
    steps = max(0, int((maximum - start) / step + 1e-9))
    return start + step * torch.arange(steps + 1, dtype=torch.float64, device=like.device)


def _sums_of_minimum(values: Tensor, weights: Tensor, bounds: Tensor) -> Tensor:
    """Return sum_i weights_i * min(values_i, bound) for each of the rising bounds.

    One pass over the values instead of one per bound: sums between neighbouring bounds first.
    """
    bin_ = torch.bucketize(values, bounds)  # how many bounds lie below the value
    empty_N = torch.zeros(len(bounds) + 1, dtype=torch.float64, device=bounds.device)
    weight_N = empty_N.index_add(0, bin_, weights)
    product_N = empty_N.index_add(0, bin_, weights * values)
    below = product_N.cumsum(0)[:-1]
    above = weight_N.flip(0).cumsum(0).flip(0)[1:]
    return below + bounds * above
