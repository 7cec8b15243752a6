"""One policy update on one mini-batch: forward passes, coefficients, loss, optimizer step."""

import dataclasses
import math
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from respo.cli import UserError
from respo.config.schema import RunConfig, Training
from respo.objectives import coefficients, entropy_bonus, kl_loss, policy_loss, token_weights
from respo.policy import Policy
from respo.training.local.log_probs import LogProbs, check_sampler, fast_order, log_probs
from respo.training.local.metrics import branches, measure
from respo.training.local.optimizer import AdamW
from respo.training.local.responses import Responses


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
    reference: Policy,
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
            would cost a third of an update. With routing replay this pass, too, takes the recorded
            experts.
        reference: what a KL loss is taken against, the policy at its initial weights.
        micro_batch_rows: rows per forward pass; does not change the result.

    Raises:
        UserError: loss or gradient is not finite; nothing was changed.
    """
    training = config.training
    # A KL or entropy term has a gradient everywhere; the objective is multiplied by the advantage.
    everywhere = training.kl_coefficient > 0 or training.entropy_coefficient > 0
    learns_B = (responses.advantage_B != 0) | everywhere
    responses = responses.select(fast_order(responses.length_B, learns_B))
    passed = log_probs(
        optimizer.policy,
        responses,
        training.temperature,
        learning=int(learns_B.sum()),
        entropy_gradient=training.entropy_coefficient > 0,
        micro_batch_rows=micro_batch_rows,
    )
    log_prob_BT, entropy_BT = passed.log_prob_BT, passed.entropy_BT.detach()
    old_log_prob_BT = responses.old_log_prob_BT
    if on_policy:
        check_sampler(log_prob_BT.detach(), responses)
        old_log_prob_BT = log_prob_BT.detach()
    log_ratio_BT = torch.where(responses.mask_BT, log_prob_BT.detach() - old_log_prob_BT, 0.0)
    # Coefficients and loss see the whole mini-batch at once: no split can change their meaning.
    coefficient_BT = _coefficients(config, responses, log_ratio_BT, old_log_prob_BT, entropy_BT)
    weight_B = token_weights(
        training.loss_aggregation,
        responses.mask_BT,
        batch_tokens=int(responses.mask_BT.sum()),
        batch_responses=len(responses.mask_BT),
        max_response_tokens=config.model.max_response_tokens,
    )
    loss = policy_loss(
        log_prob_BT, coefficient_BT, responses.advantage_B, responses.mask_BT, weight_B
    )
    regularisation, reference_kl = _regularisation(
        passed, reference, responses, training, weight_B, micro_batch_rows
    )
    loss = loss + regularisation
    settings = training.optimizer
    rate = settings.learning_rate * min(1.0, update / max(1, settings.warmup_updates))
    gradient = optimizer.gradient(loss)
    norm = optimizer.norm(gradient)
    if not (math.isfinite(loss.item()) and math.isfinite(norm)):
        culprit = "a lower optimizer.learning_rate or gradient_clip may help"
        if not torch.isfinite(coefficient_BT).all():
            culprit = f"objective {config.objective.objective} gives coefficients that are not"
        raise UserError(
            f"update {update}: loss {loss.item()}, gradient norm {norm}: not finite, so training "
            f"stops here; {culprit}"
        )
    optimizer.step(gradient, norm, rate)
    tensors = {"log_ratio_BT": log_ratio_BT, "coefficient_BT": coefficient_BT}
    metrics = measure(responses, config.objective.objective, **tensors, entropy_BT=entropy_BT)
    metrics |= {"reference_kl": reference_kl, "grad_norm": norm}
    return Updated(metrics, branches(responses, **tensors))


def _coefficients(
    config: RunConfig,
    responses: Responses,
    log_ratio_BT: Tensor,
    old_log_prob_BT: Tensor,
    entropy_BT: Tensor,
) -> Tensor:
    try:
        return coefficients(
            config.objective.objective,
            log_ratio_BT,
            responses.advantage_B,
            responses.mask_BT,
            old_log_prob_BT,
            entropy_BT=entropy_BT,
            **config.objective.parameters,  # type: ignore[arg-type]  # checked by the objective
        )
    except ValueError as error:  # of an objective of the user's own
        raise UserError(str(error)) from None


def _regularisation(
    passed: LogProbs,
    reference: Policy,
    responses: Responses,
    training: Training,
    weight_B: Tensor,
    micro_batch_rows: int | None,
) -> tuple[Tensor | float, float]:
    """Return what KL and entropy add to the loss, and the mean KL per token (NaN if there is none).

    Both have the weights of the policy loss. The reference chooses its experts itself.
    """
    mask_BT = responses.mask_BT
    total: Tensor | float = 0.0
    reference_kl = math.nan
    if training.kl_coefficient > 0:
        reference_log_prob_BT = log_probs(
            reference,
            dataclasses.replace(responses, routes_BTLK=None),
            training.temperature,
            learning=0,
            micro_batch_rows=micro_batch_rows,
        ).log_prob_BT
        kl = partial(kl_loss, passed.log_prob_BT, reference_log_prob_BT, mask_BT)
        total = total + training.kl_coefficient * kl(weight_B)
        reference_kl = kl(torch.full_like(weight_B, 1 / int(mask_BT.sum()))).item()
    if training.entropy_coefficient > 0:
        bonus = entropy_bonus(passed.entropy_BT, mask_BT, weight_B)
        total = total - training.entropy_coefficient * bonus
    return total, reference_kl
