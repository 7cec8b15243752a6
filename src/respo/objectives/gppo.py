"""GPPO and CE-GPPO: beyond the clip the bound stays as the weight."""

import torch
from torch import Tensor

from respo.objectives.parameters import NonNegative, UnitInterval
from respo.objectives.registry import objective


@objective("gppo")
def gppo(
    log_ratio_BT: Tensor,
    advantage_B1: Tensor,
    *,
    epsilon_low: UnitInterval = 0.2,
    epsilon_high: NonNegative = 0.2,
    beta_low: NonNegative = 1.0,
    beta_high: NonNegative = 1.0,
) -> Tensor:
    """Return beta_low * (1 - epsilon_low) where A < 0 and r < 1 - epsilon_low,
    beta_high * (1 + epsilon_high) where A > 0 and r > 1 + epsilon_high, r elsewhere.

    GPPO (Klear-Reasoner, Su et al. 2025a, arXiv 2508.07629), both betas 1. CE-GPPO (Su et al.
    2025b, arXiv 2509.20712) scales the two sides by its beta_1 (here beta_low) and beta_2 (here
    beta_high).
    """
    ratio_BT = log_ratio_BT.exp()
    low_BT = (advantage_B1 < 0) & (ratio_BT < 1 - epsilon_low)
    high_BT = (advantage_B1 > 0) & (ratio_BT > 1 + epsilon_high)
    ratio_BT = torch.where(low_BT, beta_low * (1 - epsilon_low), ratio_BT)
    return torch.where(high_BT, beta_high * (1 + epsilon_high), ratio_BT)
