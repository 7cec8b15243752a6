"""GRPO without importance sampling: every token weighs the same."""

import torch
from torch import Tensor

from respo.objectives.registry import objective


@objective("grpo_no_is")
def grpo_no_is(advantage_B1: Tensor) -> Tensor:
    """Return 1.

    ASPO, Sec. 4.2: all importance ratios fixed to 1. A ratio of 1 is never clipped.
    """
    return torch.ones_like(advantage_B1)
