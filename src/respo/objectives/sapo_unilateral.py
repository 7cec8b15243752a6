"""SAPO's gate on one side only: where the sign of the advantage drives the ratio away from 1."""

import torch
from torch import Tensor

from respo.objectives.parameters import Positive
from respo.objectives.registry import objective
from respo.objectives.sapo import sapo


@objective("sapo_unilateral")
def sapo_unilateral(
    log_ratio_BT: Tensor,
    advantage_B1: Tensor,
    *,
    tau_pos: Positive = 1.0,
    tau_neg: Positive = 1.05,
) -> Tensor:
    """Return sapo's c where A > 0 and r > 1, or A < 0 and r < 1; r elsewhere.

    MASPO, App. D.2.
    """
    away_BT = ((advantage_B1 > 0) & (log_ratio_BT > 0)) | ((advantage_B1 < 0) & (log_ratio_BT < 0))
    gated_BT = sapo(log_ratio_BT, advantage_B1, tau_pos=tau_pos, tau_neg=tau_neg)
    return torch.where(away_BT, gated_BT, log_ratio_BT.exp())
