"""GRPO whose positive responses carry one ratio, the mean over their tokens."""

import torch
from torch import Tensor

from respo.objectives.grpo import grpo
from respo.objectives.parameters import AboveOne, NonNegative, UnitInterval
from respo.objectives.registry import objective


@objective("grpo_pos_mean_is")
def grpo_pos_mean_is(
    log_ratio_BT: Tensor,
    advantage_B1: Tensor,
    mask_BT: Tensor,
    *,
    epsilon_low: UnitInterval = 0.2,
    epsilon_high: NonNegative = 0.2,
    dual_clip: AboveOne | None = None,
) -> Tensor:
    """Return A > 0: m = mean of r over the response, 0 where m > 1 + epsilon_high; else grpo's c.

    ASPO, Sec. 5.3. The mean is the arithmetic one, detached; the clip acts on it, so that a whole
    response is kept or dropped.
    """
    token_BT = grpo(
        log_ratio_BT,
        advantage_B1,
        epsilon_low=epsilon_low,
        epsilon_high=epsilon_high,
        dual_clip=dual_clip,
    )
    # In float64, so that the order of the tokens does not decide at the bound.
    ratio_BT = torch.where(mask_BT, log_ratio_BT.double().exp(), 0.0)
    mean_B1 = ratio_BT.sum(dim=1, keepdim=True) / mask_BT.sum(dim=1, keepdim=True).clamp(min=1)
    response_B1 = torch.where(mean_B1 > 1 + epsilon_high, 0.0, mean_B1).to(token_BT.dtype)
    return torch.where(advantage_B1 > 0, response_B1, token_BT)
