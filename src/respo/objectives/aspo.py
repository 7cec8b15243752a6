"""ASPO: GRPO with the ratio of positive responses turned upside down."""

import torch
from torch import Tensor

from respo.objectives.grpo import grpo
from respo.objectives.parameters import AboveOne, NonNegative, UnitInterval
from respo.objectives.registry import objective


@objective("aspo")
def aspo(
    log_ratio_BT: Tensor,
    advantage_B1: Tensor,
    *,
    epsilon_low: UnitInterval = 0.2,
    epsilon_high: NonNegative = 0.2,
    dual_clip: AboveOne | None = 3.0,
) -> Tensor:
    """Return A > 0: min(1/r, dual_clip), 0 where r > 1 + epsilon_high; else grpo's c.

    ASPO, Sec. 6: token masking as in GRPO (step 1), 1/r for positive advantages (eq. 3), dual clip
    (step 3). The dual clip of positive tokens is soft: it bounds the weight and keeps the gradient.
    That of negative tokens is the usual hard one, 0 where r > dual_clip. `dual_clip` null is the
    ablation of Fig. 8. The authors' public code splits tokens by entropy and clips at 0.2 and 0.4,
    which the paper does not describe; the paper is followed.
    """
    token_BT = grpo(
        log_ratio_BT,
        advantage_B1,
        epsilon_low=epsilon_low,
        epsilon_high=epsilon_high,
        dual_clip=dual_clip,
    )
    inverse_BT = (-log_ratio_BT).exp()
    if dual_clip is not None:
        inverse_BT = inverse_BT.clamp(max=dual_clip)
    return torch.where((advantage_B1 > 0) & (token_BT != 0), inverse_BT, token_BT)
