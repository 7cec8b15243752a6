"""Advantage reweighting: GRPO whose unlikely tokens count less."""

from torch import Tensor

from respo.objectives.grpo import grpo
from respo.objectives.parameters import AboveOne, NonNegative, UnitInterval
from respo.objectives.registry import objective


@objective("adv_reweight")
def adv_reweight(
    log_ratio_BT: Tensor,
    advantage_B1: Tensor,
    log_prob_BT: Tensor,
    *,
    alpha: UnitInterval = 0.1,
    epsilon_low: UnitInterval = 0.2,
    epsilon_high: NonNegative = 0.2,
    dual_clip: AboveOne | None = None,
) -> Tensor:
    """Return grpo's c times alpha * pi + 1 - alpha, pi the current probability of the token.

    Yang et al. 2025b (arXiv 2505.12929), whose alpha is 0.3; 0.1 is the tuned value of
    MASPO, App. D.1. The authors' public code takes pi_old, once per rollout batch.
    """
    token_BT = grpo(
        log_ratio_BT,
        advantage_B1,
        epsilon_low=epsilon_low,
        epsilon_high=epsilon_high,
        dual_clip=dual_clip,
    )
    # A probability beyond 1 would be a rounding error, or a log-ratio that r itself is clamped for.
    return token_BT * (alpha * log_prob_BT.exp().clamp(max=1) + 1 - alpha)
