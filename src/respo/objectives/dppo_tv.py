"""DPPO with the binary total-variation mask: clipped by the shift of probability, not its ratio."""

import torch
from torch import Tensor

from respo.objectives.parameters import AboveOne, UnitInterval
from respo.objectives.registry import objective


@objective("dppo_tv")
def dppo_tv(
    log_ratio_BT: Tensor,
    advantage_B1: Tensor,
    old_log_prob_BT: Tensor,
    log_prob_BT: Tensor,
    *,
    delta_low: UnitInterval = 0.15,
    delta_high: UnitInterval = 0.15,
    ratio_cap: AboveOne | None = 20.0,
) -> Tensor:
    """Return min(r, ratio_cap), 0 where A > 0 and pi - pi_old > delta_high, or A < 0 and
    pi_old - pi > delta_low.

    DPPO (arXiv 2602.04879), the binary TV mask; the truncation of the ratio is that of Sec. 5.4.
    verl's `dppo_tv` falls back to a cap of 20, though its actor's own default, 3, goes before.
    """
    ratio_BT = log_ratio_BT.exp()
    if ratio_cap is not None:
        ratio_BT = ratio_BT.clamp(max=ratio_cap)
    shift_BT = log_prob_BT.exp() - old_log_prob_BT.exp()
    masked_pos_BT = (advantage_B1 > 0) & (shift_BT > delta_high)
    masked_neg_BT = (advantage_B1 < 0) & (shift_BT < -delta_low)
    return torch.where(masked_pos_BT | masked_neg_BT, 0.0, ratio_BT)
