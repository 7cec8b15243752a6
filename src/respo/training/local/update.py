"""One policy update on one mini-batch: forward passes, coefficients, loss, optimizer step."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from respo.cli import UserError
from respo.config.schema import RunConfig
from respo.objectives import coefficients, policy_loss, token_weights
from respo.policy import Policy, token_log_probs
from respo.training.local.metrics import branches, measure
from respo.training.local.optimizer import AdamW
from respo.training.local.responses import Responses

# Rows per forward pass. On a CPU, 16 rows of similar length waste little on padding and their
# activations stay in the cache; a GPU wants few large kernels.
MICRO_BATCH_ROWS = {"cpu": 16, "cuda": 512}

# Mean difference per token, in nats, between the sampler's log-probabilities and the forward pass
# at the same weights. Rounding makes 1e-6; a forgotten temperature makes 1e-1.
SAMPLER_TOLERANCE = 1e-2


@dataclass(frozen=True)
class Updated:
    """What an update leaves behind: metrics of the mini-batch and sums by branch."""

    metrics: dict[str, float]
    branches: Tensor


def policy_update(
    optimizer: AdamW,
    responses: Responses,
    config: RunConfig,
    update: int,
    *,
    on_policy: bool,
    micro_batch_rows: int | None = None,
) -> Updated:
    """Take one step of the objective on a mini-batch.

    Args:
        optimizer: holds the policy.
        responses: the mini-batch, M groups of G.
        config: of the run.
        update: number of this update, from 1.
        on_policy: the weights are those that sampled the responses. Then pi_old is this very
            forward pass: log-ratios are exactly 0, where the sampler's own log-probabilities would
            leave rounding errors of 1e-6. The later mini-batches of a rollout batch use the
            sampler's: their log-ratios are larger by orders of magnitude, and recomputing pi_old
            would cost a third of an update.
        micro_batch_rows: rows per forward pass; does not change the result.

    Raises:
        UserError: loss or gradient is not finite; nothing was changed.
    """
    responses = _sorted_for_speed(responses)
    rows = micro_batch_rows or MICRO_BATCH_ROWS[optimizer.policy.device.type]
    log_prob_BT, entropy_BT = _log_probs(
        optimizer.policy, responses, config.training.temperature, rows
    )
    old_log_prob_BT = responses.old_log_prob_BT
    if on_policy:
        _check_sampler(log_prob_BT.detach(), responses)
        old_log_prob_BT = log_prob_BT.detach()
    log_ratio_BT = torch.where(responses.mask_BT, log_prob_BT.detach() - old_log_prob_BT, 0.0)
    # Coefficients and loss see the whole mini-batch at once: no split can change their meaning.
    coefficient_BT = coefficients(
        config.objective.objective,
        log_ratio_BT,
        responses.advantage_B,
        responses.mask_BT,
        old_log_prob_BT,
        **config.objective.parameters,  # type: ignore[arg-type]  # checked by the objective
    )
    loss = policy_loss(
        log_prob_BT,
        coefficient_BT,
        responses.advantage_B,
        responses.mask_BT,
        token_weights(
            config.training.loss_aggregation,
            responses.mask_BT,
            batch_tokens=int(responses.mask_BT.sum()),
            batch_responses=len(responses.mask_BT),
            max_response_tokens=config.model.max_response_tokens,
        ),
    )
    settings = config.training.optimizer
    rate = settings.learning_rate * min(1.0, update / max(1, settings.warmup_updates))
    gradient = optimizer.gradient(loss)
    norm = optimizer.norm(gradient)
    if not (math.isfinite(loss.item()) and math.isfinite(norm)):
        raise UserError(
            f"update {update}: loss {loss.item()}, gradient norm {norm}: not finite, so training "
            f"stops here; a lower optimizer.learning_rate or gradient_clip may help"
        )
    optimizer.step(gradient, norm, rate)
    tensors = {"log_ratio_BT": log_ratio_BT, "coefficient_BT": coefficient_BT}
    metrics = measure(responses, config.objective.objective, **tensors, entropy_BT=entropy_BT)
    return Updated({**metrics, "grad_norm": norm}, branches(responses, **tensors))


def _sorted_for_speed(responses: Responses) -> Responses:
    """Order rows by whether they have a gradient, then by length, so that little is padding."""
    key_B = responses.length_B + (responses.advantage_B == 0) * (1 + responses.length_B.max())
    return responses.select(key_B.argsort(stable=True))


def _log_probs(
    policy: Policy, responses: Responses, temperature: float, micro_batch_rows: int
) -> tuple[Tensor, Tensor]:
    """Return log-probabilities and entropies of the next tokens, both (B, T-1).

    Rows with advantage 0 are multiplied by 0 in the loss, so they are computed without gradient,
    for the metrics alone. They come last, see `_sorted_for_speed`.
    """
    learning = int((responses.advantage_B != 0).sum())
    width = responses.mask_BT.shape[1]
    log_probs, entropies = [], []
    for first, last, with_gradient in (
        (0, learning, True),
        (learning, len(responses.mask_BT), False),
    ):
        for start in range(first, last, micro_batch_rows):
            part = slice(start, min(start + micro_batch_rows, last))
            ids_BT = responses.ids_BT[part, : int(responses.length_B[part].max())]
            with torch.set_grad_enabled(with_gradient):
                log_prob_BT, entropy_BT = token_log_probs(policy, ids_BT, temperature)
            padding = (0, width - log_prob_BT.shape[1])
            log_probs.append(torch.nn.functional.pad(log_prob_BT, padding))
            entropies.append(torch.nn.functional.pad(entropy_BT, padding))
    return torch.cat(log_probs), torch.cat(entropies)


def _check_sampler(log_prob_BT: Tensor, responses: Responses) -> None:
    difference_BT = (log_prob_BT - responses.old_log_prob_BT).abs()
    mean = float(difference_BT[responses.mask_BT].mean())
    # Not a comparison with `>`: NaN is told by the check of the loss.
    if mean > SAMPLER_TOLERANCE:
        raise UserError(
            f"the sampler's log-probabilities differ from the policy's by {mean:.2g} nats per "
            f"token with no update between; training on them would be wrong"
        )
