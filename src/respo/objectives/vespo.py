"""VESPO: a gamma-shaped kernel of the sequence weight, by sign of the advantage."""

import torch
from torch import Tensor

from respo.objectives.parameters import NonNegative
from respo.objectives.ratios import EXPONENT_LIMIT
from respo.objectives.registry import objective


@objective("vespo")
def vespo(
    log_weight_B1: Tensor,
    advantage_B1: Tensor,
    *,
    beta_pos: NonNegative = 2.0,
    lambda_pos: NonNegative = 3.0,
    beta_neg: NonNegative = 3.0,
    lambda_neg: NonNegative = 2.0,
) -> Tensor:
    """Return W^beta * exp(lambda * (1 - W)), beta and lambda by sign of A.

    VESPO (Shen et al. 2026) with its best sign-specific setting, as the ReSPO paper uses it
    (Tab. 3).
    """

    def phi(beta: float, lambda_: float) -> Tensor:
        log_phi_B1 = beta * log_weight_B1 + lambda_ * (1 - log_weight_B1.exp())
        return log_phi_B1.clamp(max=EXPONENT_LIMIT).exp()  # reached only without a tilt

    return torch.where(advantage_B1 > 0, phi(beta_pos, lambda_pos), phi(beta_neg, lambda_neg))
