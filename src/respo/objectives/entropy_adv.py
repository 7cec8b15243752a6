"""Entropy advantage: GRPO with a bonus on the advantage of uncertain tokens."""

import torch
from torch import Tensor

from respo.objectives.grpo import grpo
from respo.objectives.parameters import AboveOne, NonNegative, UnitInterval
from respo.objectives.registry import objective


@objective("entropy_adv")
def entropy_adv(
    log_ratio_BT: Tensor,
    advantage_B1: Tensor,
    entropy_BT: Tensor,
    *,
    alpha: NonNegative = 0.4,
    kappa: AboveOne = 2.0,
    epsilon_low: UnitInterval = 0.2,
    epsilon_high: NonNegative = 0.28,
    dual_clip: AboveOne | None = None,
) -> Tensor:
    """Return grpo's c times A'/A with A' = A + min(alpha * H, |A| / kappa), H in nats.

    Cheng et al. 2025 (arXiv 2506.14758); H of the current policy, detached. kappa > 1 keeps
    the sign of A, so the clip is that of A. Where A = 0 the bonus is 0 and so is c * A.
    """
    token_BT = grpo(
        log_ratio_BT,
        advantage_B1,
        epsilon_low=epsilon_low,
        epsilon_high=epsilon_high,
        dual_clip=dual_clip,
    )
    bonus_BT = torch.minimum(alpha * entropy_BT, advantage_B1.abs() / kappa)
    return token_BT * torch.where(advantage_B1 == 0, 1.0, 1 + bonus_BT / advantage_B1)
