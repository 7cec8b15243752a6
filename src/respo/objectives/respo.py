"""ReSPO: a tilted power-mean kernel of the sequence weight, by sign of the advantage."""

import math

import torch
from torch import Tensor

from respo.objectives.parameters import NonNegative, Number, UnitInterval
from respo.objectives.ratios import EXPONENT_LIMIT
from respo.objectives.registry import objective


@objective("respo")
def respo(
    log_weight_B1: Tensor,
    advantage_B1: Tensor,
    *,
    alpha_pos: Number = 2.0,
    beta_pos: UnitInterval = 0.5,
    lambda_pos: NonNegative = 2.0,
    alpha_neg: Number = 1.0,
    beta_neg: UnitInterval = 0.5,
    lambda_neg: NonNegative = 2.0,
) -> Tensor:
    """Return phi0 * exp(lambda * (1 - phi0)); alpha, beta and lambda by sign of A.

    phi0 = ((1 - beta) + beta * W^(alpha - 1))^(1 / (alpha - 1)), the power mean of 1 and W;
    W^beta at alpha = 1.

    ReSPO, eq. 9 and 12, App. A. Published: (1 + W)/2 * exp(1 - W) for positive advantages and
    sqrt(W) * exp(2 * (1 - sqrt(W))) for negative ones.
    """

    def phi(alpha: float, beta: float, lambda_: float) -> Tensor:
        log_phi0_B1 = log_power_mean(log_weight_B1, alpha, beta)
        log_phi_B1 = log_phi0_B1 + lambda_ * (1 - log_phi0_B1.exp())
        return log_phi_B1.clamp(max=EXPONENT_LIMIT).exp()  # reached only without a tilt

    return torch.where(
        advantage_B1 > 0,
        phi(alpha_pos, beta_pos, lambda_pos),
        phi(alpha_neg, beta_neg, lambda_neg),
    )


def log_power_mean(log_weight: Tensor, alpha: float, beta: float) -> Tensor:
    """Return log [(1 - beta) + beta * W^(alpha - 1)]^(1 / (alpha - 1)), its limit at alpha = 1."""
    order = alpha - 1
    # Within 1e-8 of the limit the division below loses more digits than the limit is off.
    if abs(order) < 1e-8:
        return beta * log_weight
    log_one = log_weight.new_tensor(math.log1p(-beta) if beta < 1 else -math.inf)
    log_beta = math.log(beta) if beta > 0 else -math.inf
    return torch.logaddexp(log_one, log_beta + order * log_weight) / order
