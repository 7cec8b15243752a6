"""DAC, the dynamic clip of DCPO: the rarer a token was, the wider its clip range."""

import torch
from torch import Tensor

from respo.objectives.parameters import AboveOne, NonNegative
from respo.objectives.registry import objective


@objective("dac")
def dac(
    log_ratio_BT: Tensor,
    advantage_B1: Tensor,
    old_log_prob_BT: Tensor,
    *,
    epsilon_low: NonNegative = 0.16,
    epsilon_high: NonNegative = 0.2,
    ratio_cap: AboveOne = 10.0,
) -> Tensor:
    """Return r, or 0 where A > 0 and r > min(high, ratio_cap), or A < 0 and r < low or > ratio_cap.

    low = 0.5 + 0.5 sqrt(max(1 - 4 epsilon_low / pi_old, 0)),
    high = 0.5 + 0.5 sqrt(1 + 4 epsilon_high / pi_old).

    DCPO (Yang et al. 2025, arXiv 2509.02333), the dynamic clip alone. Its public code bounds high
    by the cap and gives negative tokens a hard dual clip at it, so that the gradient is gone beyond
    the cap for both signs.
    """
    ratio_BT = log_ratio_BT.exp()
    inverse_BT = torch.exp(-old_log_prob_BT)
    low_BT = 0.5 + 0.5 * (1 - 4 * epsilon_low * inverse_BT).clamp(min=0).sqrt()
    high_BT = (0.5 + 0.5 * (1 + 4 * epsilon_high * inverse_BT).sqrt()).clamp(max=ratio_cap)
    clipped_pos_BT = (advantage_B1 > 0) & (ratio_BT > high_BT)
    clipped_neg_BT = (advantage_B1 < 0) & ((ratio_BT < low_BT) | (ratio_BT > ratio_cap))
    return torch.where(clipped_pos_BT | clipped_neg_BT, 0.0, ratio_BT)
