"""Importance ratios in log space: clean at masked tokens, summed in float64, safe under exp."""

from collections.abc import Callable

import torch
from torch import Tensor

# exp(20) is 4.9e8: far outside anything a step should weigh, still far from float32's limit.
EXPONENT_LIMIT = 20.0


def as_mask(mask_BT: Tensor, shape: torch.Size) -> Tensor:
    """Return a bool mask; ValueError unless it has this shape and holds only 0 and 1."""
    if mask_BT.shape != shape or mask_BT.dim() != 2:
        raise ValueError(f"mask_BT has shape {tuple(mask_BT.shape)}, expected (B, T) as log ratios")
    if mask_BT.dtype == torch.bool:
        return mask_BT
    if not ((mask_BT == 0) | (mask_BT == 1)).all():
        raise ValueError("mask_BT must hold only 0 and 1")
    return mask_BT != 0


def token_log_ratio(log_ratio_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Return l_t with 0 at masked tokens, whatever stood there."""
    # where, not a product: 0 * inf and 0 * NaN are NaN.
    return torch.where(mask_BT, log_ratio_BT, 0.0)


def sequence_log_ratio(log_ratio_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Return L = log W = sum of unclamped l_t, shape (B, 1), float64; 0 without valid tokens."""
    return token_log_ratio(log_ratio_BT, mask_BT).double().sum(dim=1, keepdim=True)


def mean_log_ratio(log_ratio_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Return L / T, the log of the geometric mean ratio, shape (B, 1), float64."""
    tokens_B1 = mask_BT.sum(dim=1, keepdim=True).clamp(min=1)
    return sequence_log_ratio(log_ratio_BT, mask_BT) / tokens_B1


EXPONENTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "log_ratio_BT": token_log_ratio,
    "mean_log_ratio_B1": mean_log_ratio,
    "log_weight_B1": sequence_log_ratio,
}


def clamp_exponent(exponent: Tensor) -> Tensor:
    """Clamp what is about to be exponentiated to +-EXPONENT_LIMIT (NaN stays NaN)."""
    return exponent.clamp(-EXPONENT_LIMIT, EXPONENT_LIMIT)


def count_clamped(exponent: Tensor) -> int:
    """Return how many elements `clamp_exponent` changes."""
    return int((exponent.abs() > EXPONENT_LIMIT).sum())
