"""What the coefficients do, as sums that add up over micro-batches and ranks."""

import math

import torch
from torch import Tensor

from respo.objectives.ratios import (
    as_mask,
    clamp_exponent,
    sequence_log_ratio,
    token_log_ratio,
)

SIGNS = ("pos", "neg")
# Edges of the bins over log W; a bin holds its right edge. ReSPO, App. E.3, and their mirror
# image above 0.
LOG_W_EDGES = (-math.inf, -5.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 5.0, math.inf)


@torch.no_grad()
def sequence_log_weight(log_ratio_BT: Tensor, mask_BT: Tensor) -> Tensor:
    """Return the unclamped log W of each response, shape (B,), float64, 0 without valid tokens."""
    return sequence_log_ratio(log_ratio_BT, as_mask(mask_BT, log_ratio_BT.shape)).squeeze(1)


@torch.no_grad()
def coefficient_sums(
    coefficient_BT: Tensor, advantage_B: Tensor, mask_BT: Tensor
) -> dict[str, Tensor]:
    """Return sums over valid tokens by sign of the advantage, each of shape (2,) as in `SIGNS`.

    `tokens`: their number; `clipped`: those whose coefficient is exactly 0; `coefficient`: the
    sum of c. Responses with advantage 0 belong to neither sign.
    """
    mask_BT = as_mask(mask_BT, coefficient_BT.shape)
    sign_2B = _by_sign(advantage_B)
    coefficient_BT = torch.where(mask_BT, coefficient_BT, 0.0).double()
    return {
        "tokens": sign_2B @ mask_BT.sum(dim=1).double(),
        "clipped": sign_2B @ (mask_BT & (coefficient_BT == 0)).sum(dim=1).double(),
        "coefficient": sign_2B @ coefficient_BT.sum(dim=1),
    }


def coefficient_metrics(sums: dict[str, Tensor]) -> dict[str, float]:
    """Return `clip_fraction_*` and `coefficient_mean_*` from added-up `coefficient_sums`.

    NaN for a sign without tokens.
    """
    metrics = {}
    for index, sign in enumerate(SIGNS):
        tokens = sums["tokens"][index]
        metrics[f"clip_fraction_{sign}"] = float(sums["clipped"][index] / tokens)
        metrics[f"coefficient_mean_{sign}"] = float(sums["coefficient"][index] / tokens)
    return metrics


@torch.no_grad()
def ratio_sums(advantage_B: Tensor, mask_BT: Tensor, log_ratio_BT: Tensor) -> dict[str, Tensor]:
    """Return sums over responses by sign of the advantage, each of shape (2,) as in `SIGNS`.

    `responses`: their number; `ratio`: the sum of their mean token ratios pi / pi_old (exponents
    clamped). Responses with advantage 0 or without valid tokens are left out. ASPO, Fig. 3.
    """
    mask_BT = as_mask(mask_BT, log_ratio_BT.shape)
    tokens_B = mask_BT.sum(dim=1)
    ratio_BT = clamp_exponent(token_log_ratio(log_ratio_BT, mask_BT)).exp()
    ratio_B = torch.where(mask_BT, ratio_BT, 0.0).double().sum(dim=1) / tokens_B.clamp(min=1)
    sign_2B = _by_sign(advantage_B)
    return {"responses": sign_2B @ (tokens_B > 0).double(), "ratio": sign_2B @ ratio_B}


def ratio_metrics(sums: dict[str, Tensor]) -> dict[str, float]:
    """Return `ratio_mean_*` from added-up `ratio_sums`; NaN for a sign without responses."""
    mean_2 = sums["ratio"] / sums["responses"]
    return {f"ratio_mean_{sign}": float(mean_2[row]) for row, sign in enumerate(SIGNS)}


@torch.no_grad()
def branch_sums(
    coefficient_BT: Tensor, advantage_B: Tensor, mask_BT: Tensor, log_ratio_BT: Tensor
) -> dict[str, Tensor]:
    """Return sums over responses by sign of the advantage and bin of log W.

    Each has shape (2, bins), rows as in `SIGNS`, bins as in `LOG_W_EDGES`. `responses`: their
    number (int64); `tokens`: the sum of their lengths (int64); `coefficient_mass`: the sum of
    |A| * c (float64), c averaged over the response's tokens. Responses with advantage 0 or
    without valid tokens are left out. ReSPO, App. E.3.
    """
    mask_BT = as_mask(mask_BT, coefficient_BT.shape)
    tokens_B = mask_BT.sum(dim=1)
    coefficient_B = torch.where(mask_BT, coefficient_BT, 0.0).double().sum(dim=1) / tokens_B.clamp(
        min=1
    )
    mass_B = advantage_B.double().abs() * coefficient_B
    log_weight_B = sequence_log_weight(log_ratio_BT, mask_BT)
    inner_edges = log_weight_B.new_tensor(LOG_W_EDGES[1:-1])
    bin_B = torch.bucketize(log_weight_B, inner_edges)  # right edge belongs to the bin
    bins = len(LOG_W_EDGES) - 1
    in_bin_BN = torch.nn.functional.one_hot(bin_B, bins).double()
    in_bin_BN = in_bin_BN * (tokens_B > 0).unsqueeze(1)
    sign_2B = _by_sign(advantage_B)
    return {
        "responses": (sign_2B @ in_bin_BN).long(),
        "coefficient_mass": (sign_2B * mass_B) @ in_bin_BN,
        "tokens": ((sign_2B * tokens_B) @ in_bin_BN).long(),
    }


def _by_sign(advantage_B: Tensor) -> Tensor:
    return torch.stack((advantage_B > 0, advantage_B < 0)).double()
