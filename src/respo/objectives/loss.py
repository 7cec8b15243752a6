"""The one policy loss, and how it is averaged over a mini-batch."""

import math

import torch
from torch import Tensor

from respo.objectives.ratios import as_mask

AGGREGATIONS = (
    "token-mean",
    "seq-mean-token-mean",
    "seq-mean-token-sum",
    "seq-mean-token-sum-norm",
)


def policy_loss(
    log_prob_BT: Tensor,
    coefficient_BT: Tensor,
    advantage_B: Tensor,
    mask_BT: Tensor,
    token_weight_B: Tensor,
) -> Tensor:
    """Return the sum over valid tokens of -(c * A * weight) * log pi, a scalar.

    Only log pi is differentiated. The weights carry the normalisation of the whole mini-batch
    (`token_weights`), so the losses of micro-batches add up to the loss of the mini-batch.
    Masked positions may hold anything. Its value is no measure of progress; its gradient is the
    objective's.

    Args:
        log_prob_BT: log pi of the sampled tokens in nats, with gradient.
        coefficient_BT: from `coefficients`.
        advantage_B: one advantage per response.
        mask_BT: 1 at the tokens of the response, 0 elsewhere.
        token_weight_B: from `token_weights`.

    Raises:
        ValueError: shapes that do not fit each other, or log-probabilities in low precision.
    """
    if log_prob_BT.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"log_prob_BT must be float32 or float64, not {log_prob_BT.dtype}")
    mask_BT = as_mask(mask_BT, log_prob_BT.shape)
    _check(log_prob_BT.shape, coefficient_BT=coefficient_BT)
    _check(log_prob_BT.shape[:1], advantage_B=advantage_B, token_weight_B=token_weight_B)
    scale_B1 = (advantage_B * token_weight_B).to(log_prob_BT.dtype).unsqueeze(1)
    scale_BT = (coefficient_BT * scale_B1).detach().masked_fill(~mask_BT, 0.0)
    return -(scale_BT * log_prob_BT.masked_fill(~mask_BT, 0.0)).sum()


def kl_loss(
    log_prob_BT: Tensor, reference_log_prob_BT: Tensor, mask_BT: Tensor, token_weight_B: Tensor
) -> Tensor:
    """Return the weighted sum over valid tokens of the k3 estimate of KL(pi || pi_ref), a scalar.

    k3 = exp(x) - x - 1 with x = log pi_ref - log pi (Schulman 2020; verl's `low_var_kl`, with its
    clamps: x to [-20, 20], k3 to [-10, 10]). ASPO, App. B.

    Args:
        log_prob_BT: log pi of the sampled tokens in nats, with gradient.
        reference_log_prob_BT: log pi_ref of them.
        mask_BT: 1 at the tokens of the response, 0 elsewhere; masked positions may hold anything.
        token_weight_B: from `token_weights`.
    """
    mask_BT = as_mask(mask_BT, log_prob_BT.shape)
    _check(log_prob_BT.shape, reference_log_prob_BT=reference_log_prob_BT)
    _check(log_prob_BT.shape[:1], token_weight_B=token_weight_B)
    log_ratio_BT = torch.where(mask_BT, reference_log_prob_BT - log_prob_BT, 0.0)
    log_ratio_BT = log_ratio_BT.clamp(-20.0, 20.0)
    k3_BT = (log_ratio_BT.exp() - log_ratio_BT - 1).clamp(-10.0, 10.0)
    return (k3_BT * token_weight_B.to(k3_BT.dtype).unsqueeze(1)).sum()


def entropy_bonus(entropy_BT: Tensor, mask_BT: Tensor, token_weight_B: Tensor) -> Tensor:
    """Return the weighted sum over valid tokens of the entropy, a scalar to subtract from the loss.

    Args:
        entropy_BT: entropy of pi at each token in nats, with gradient; masked positions may hold
            anything.
        mask_BT: 1 at the tokens of the response, 0 elsewhere.
        token_weight_B: from `token_weights`.
    """
    mask_BT = as_mask(mask_BT, entropy_BT.shape)
    _check(entropy_BT.shape[:1], token_weight_B=token_weight_B)
    weight_B1 = token_weight_B.to(entropy_BT.dtype).unsqueeze(1)
    return (torch.where(mask_BT, entropy_BT, 0.0) * weight_B1).sum()


def token_weights(
    aggregation: str,
    mask_BT: Tensor,
    *,
    batch_tokens: float,
    batch_responses: float,
    max_response_tokens: float,
) -> Tensor:
    """Return the weight that each token of a response has in the loss of the whole mini-batch.

    ============================  =============================================
    `token-mean`                  1 / batch_tokens
    `seq-mean-token-mean`         1 / (batch_responses * tokens of the response)
    `seq-mean-token-sum`          1 / batch_responses
    `seq-mean-token-sum-norm`     1 / (batch_responses * max_response_tokens)
    ============================  =============================================

    Args:
        aggregation: one of `AGGREGATIONS`.
        mask_BT: the mask of this micro-batch, whole responses.
        batch_tokens: valid tokens of the whole mini-batch, over all micro-batches and ranks.
        batch_responses: responses of the whole mini-batch.
        max_response_tokens: the run's limit on response length, not the width of a tensor.

    Returns:
        Weights, shape (B,), float64.

    Raises:
        ValueError: an unknown aggregation, or a total that is not positive.
    """
    mask_BT = as_mask(mask_BT, mask_BT.shape)
    totals = {
        "batch_tokens": batch_tokens,
        "batch_responses": batch_responses,
        "max_response_tokens": max_response_tokens,
    }
    for name, total in totals.items():
        if not 0 < total < math.inf:
            raise ValueError(f"{name} = {total!r} must be positive and finite")
    one_B = mask_BT.new_ones(len(mask_BT), dtype=torch.float64)
    if aggregation == "token-mean":
        return one_B / batch_tokens
    if aggregation == "seq-mean-token-mean":
        return one_B / batch_responses / mask_BT.sum(dim=1).clamp(min=1)
    if aggregation == "seq-mean-token-sum":
        return one_B / batch_responses
    if aggregation == "seq-mean-token-sum-norm":
        return one_B / batch_responses / max_response_tokens
    raise ValueError(f"unknown aggregation: {aggregation!r}; known: {', '.join(AGGREGATIONS)}")


def _check(shape: torch.Size, **tensors: Tensor) -> None:
    for name, tensor in tensors.items():
        if tensor.shape != shape:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}, expected {tuple(shape)}")
