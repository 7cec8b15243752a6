"""MASPO: the token ratio under a Gaussian gate whose width follows pi_old and the advantage."""

import torch
from torch import Tensor

from respo.objectives.parameters import NonNegative, Positive
from respo.objectives.registry import objective

MASS_LIMIT = 10.0
RISK_LIMITS = (0.1, 10.0)


@objective("maspo")
def maspo(
    log_ratio_BT: Tensor,
    advantage_B1: Tensor,
    old_log_prob_BT: Tensor,
    *,
    sigma_base: Positive = 1.0,
    alpha: NonNegative = 0.3,
    beta_low: NonNegative = 0.03,
    beta_high: NonNegative = 0.03,
) -> Tensor:
    """Return r * exp(-(r - 1)^2 / (2 sigma^2)) where the sign of A drives r away from 1, else r.

    sigma = min(sigma_base / pi_old^alpha, 10) * clip(risk, 0.1, 10) with
    risk = 1 + beta_high * A for A > 0 and 1 / (1 - beta_low * A) for A < 0.

    MASPO, Sec. 4.1 and 4.2; the limits are those of App. A.3. The authors' code also holds the
    first factor above sigma_base, which is the same for sigma_base = 1 and in general changes
    nothing since pi_old <= 1.
    """
    ratio_BT = log_ratio_BT.exp()
    size_B1 = advantage_B1.abs()
    risk_B1 = torch.where(advantage_B1 > 0, 1 + beta_high * size_B1, 1 / (1 + beta_low * size_B1))
    mass_BT = (sigma_base * torch.exp(-alpha * old_log_prob_BT)).clamp(max=MASS_LIMIT)
    sigma_BT = mass_BT * risk_B1.clamp(*RISK_LIMITS)
    gate_BT = torch.exp(-0.5 * ((ratio_BT - 1) / sigma_BT) ** 2)
    away_BT = ((advantage_B1 > 0) & (ratio_BT > 1)) | ((advantage_B1 < 0) & (ratio_BT < 1))
    return torch.where(away_BT, ratio_BT * gate_BT, ratio_BT)
