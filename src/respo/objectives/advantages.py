"""Advantages of responses relative to the others of the same prompt."""

import torch
from torch import Tensor

STD_OFFSET = 1e-6


def group_advantages(reward_B: Tensor, group_size: int) -> Tensor:
    """Return (R - mean) / (std + 1e-6) within each group of consecutive responses.

    The standard deviation is the sample's (ddof 1). A group whose rewards are all equal gets
    exactly 0. GRPO (Shao et al. 2024), Sec. 4.1.2; constants of ReSPO, App. C.

    Args:
        reward_B: finite rewards, the `group_size` responses of one prompt side by side.
        group_size: responses per prompt, at least 2.

    Returns:
        Advantages, shape (B,), in the rewards' dtype (float32 for integer rewards).

    Raises:
        ValueError: a group of one, a size that does not divide B, rewards that are not finite.
    """
    if group_size < 2:
        raise ValueError(f"group_size = {group_size}: a group needs at least 2 responses")
    if reward_B.dim() != 1 or len(reward_B) % group_size:
        raise ValueError(
            f"reward_B has shape {tuple(reward_B.shape)}: expected (B,) with B a multiple of"
            f" group_size = {group_size}"
        )
    if not torch.isfinite(reward_B).all():
        raise ValueError("reward_B holds NaN or infinite rewards")
    dtype = reward_B.dtype if reward_B.is_floating_point() else torch.float32
    reward_PG = reward_B.double().view(-1, group_size)
    centered_PG = reward_PG - reward_PG.mean(dim=1, keepdim=True)
    advantage_PG = centered_PG / (reward_PG.std(dim=1, keepdim=True) + STD_OFFSET)
    # The mean of equal rewards such as 0.7 is off by a rounding error, which the tiny offset
    # would turn into a real advantage.
    equal_P1 = (reward_PG == reward_PG[:, :1]).all(dim=1, keepdim=True)
    return torch.where(equal_P1, 0.0, advantage_PG).flatten().to(dtype)
