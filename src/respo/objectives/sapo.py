"""SAPO: the token ratio under a sigmoid gate with a temperature by sign of the advantage."""

import torch
from torch import Tensor

from respo.objectives.parameters import Positive
from respo.objectives.registry import objective


@objective("sapo")
def sapo(
    log_ratio_BT: Tensor,
    advantage_B1: Tensor,
    *,
    tau_pos: Positive = 1.0,
    tau_neg: Positive = 1.05,
) -> Tensor:
    """Return 4 p (1 - p) r with p = sigmoid(tau * (r - 1)), tau by sign of A.

    SAPO (Gao et al. 2025, arXiv 2511.20347): f(r) = sigmoid(tau * (r - 1)) * 4/tau stands
    in place of the ratio, and c = f'(r) * r. The authors average over each response first.
    """
    ratio_BT = log_ratio_BT.exp()
    tau_B1 = torch.where(advantage_B1 > 0, torch.full_like(advantage_B1, tau_pos), tau_neg)
    gate_BT = tau_B1 * (ratio_BT - 1)
    # 1 - p as sigmoid of the opposite: no digits lost where p is close to 1.
    return 4 * torch.sigmoid(gate_BT) * torch.sigmoid(-gate_BT) * ratio_BT
