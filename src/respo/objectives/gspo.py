"""GSPO: the geometric mean ratio of the response with a clip by sign of the advantage."""

import torch
from torch import Tensor

from respo.objectives.parameters import NonNegative, UnitInterval
from respo.objectives.registry import objective


@objective("gspo")
def gspo(
    mean_log_ratio_B1: Tensor,
    advantage_B1: Tensor,
    *,
    epsilon_low: UnitInterval = 3e-4,
    epsilon_high: NonNegative = 4e-4,
) -> Tensor:
    """Return s = W^(1/T), 0 where A > 0 and s > 1 + epsilon_high, or A < 0 and s < 1 - epsilon_low.

    GSPO (Zheng et al. 2025), Sec. 4.1; clip range of Sec. 5.1. Each token carries the
    1/T of the gradient of s through the aggregation: averaging over a response's tokens is the
    published objective, a token mean over the mini-batch weights long responses more.
    """
    ratio_B1 = mean_log_ratio_B1.exp()
    clipped_pos_B1 = (advantage_B1 > 0) & (ratio_B1 > 1 + epsilon_high)
    clipped_neg_B1 = (advantage_B1 < 0) & (ratio_B1 < 1 - epsilon_low)
    return torch.where(clipped_pos_B1 | clipped_neg_B1, 0.0, ratio_B1)
