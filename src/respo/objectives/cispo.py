"""CISPO: the clipped token ratio, a weight that never takes a token's gradient."""

from torch import Tensor

from respo.objectives.parameters import NonNegative, UnitInterval
from respo.objectives.registry import objective


@objective("cispo")
def cispo(
    log_ratio_BT: Tensor,
    *,
    epsilon_low: UnitInterval = 1.0,
    epsilon_high: NonNegative = 4.0,
) -> Tensor:
    """Return clip(r, 1 - epsilon_low, 1 + epsilon_high).

    CISPO (MiniMax-M1, Chen et al. 2025, arXiv 2506.13585); without a lower clip
    (epsilon_low = 1), as there. That paper does not print its epsilon_high; the default is the
    cap 5 of ScaleRL (arXiv 2510.13786). Beware: some libraries call the cap itself epsilon_high.
    """
    return log_ratio_BT.exp().clamp(1 - epsilon_low, 1 + epsilon_high)
