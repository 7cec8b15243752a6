"""GRPO: the token ratio with a clip by sign of the advantage."""

import torch
from torch import Tensor

from respo.objectives.parameters import AboveOne, NonNegative, UnitInterval
from respo.objectives.registry import objective


@objective("grpo")
def grpo(
    log_ratio_BT: Tensor,
    advantage_B1: Tensor,
    *,
    epsilon_low: UnitInterval = 0.2,
    epsilon_high: NonNegative = 0.2,
    dual_clip: AboveOne | None = None,
) -> Tensor:
    """Return r, 0 where A > 0 and r > 1 + epsilon_high, or A < 0 and either r < 1 - epsilon_low or
    r > dual_clip.

    GRPO (Shao et al. 2024), eq. 3 without the KL term. `dual_clip` (Ye et al. 2020) also zeroes
    tokens of negative responses whose ratio exceeds it; the ReSPO paper has none.
    """
    ratio_BT = log_ratio_BT.exp()
    clipped_pos_BT = ratio_BT > 1 + epsilon_high
    clipped_neg_BT = ratio_BT < 1 - epsilon_low
    if dual_clip is not None:
        clipped_neg_BT = clipped_neg_BT | (ratio_BT > dual_clip)
    clipped_BT = ((advantage_B1 > 0) & clipped_pos_BT) | ((advantage_B1 < 0) & clipped_neg_BT)
    return torch.where(clipped_BT, 0.0, ratio_BT)
