"""The one policy loss, in the form of verl's policy losses."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor
from verl.trainer.ppo.core_algos import agg_loss

from respo.objectives import coefficients
from respo.training.verl.diagnostics import sums
from respo.training.verl.mini_batch import Rows, check_batch_sums, check_entropy, current
from respo.training.verl.names import PLUGIN, class_name, loss_mode
from respo.training.verl.settings import ObjectiveConfig

Loss = Callable[..., tuple[Tensor, dict[str, Any]]]


def objective_loss(name: str) -> Loss:
    """Return the policy loss of an objective, to be registered with verl."""
    return partial(_loss, name)


def _loss(
    name: str,
    old_log_prob: Tensor,
    log_prob: Tensor,
    advantages: Tensor,
    response_mask: Tensor,
    loss_agg_mode: str = "token-mean",
    config: Any = None,
    rollout_is_weights: Tensor | None = None,
) -> tuple[Tensor, dict[str, Any]]:
    """Return the aggregated -(c * A) * log pi and verl's estimate of the KL divergence.

    Tensors are padded responses of one micro-batch, shape (B, T); masked positions may hold
    anything. Its value is no measure of progress; its gradient is the objective's.
    """
    settings = config.policy_loss
    if not isinstance(settings, ObjectiveConfig) or settings.objective != name:
        raise ValueError(
            f"actor.policy_loss.loss_mode={loss_mode(name)} needs "
            f"actor.policy_loss._target_={PLUGIN}.{class_name(name)}"
        )
    part = current()
    check_entropy(name, part.entropy_BT)
    check_batch_sums(name, part.batch_sums)
    rows = Rows.of(old_log_prob, log_prob.detach(), advantages, response_mask)
    coefficient_BT = coefficients(
        name,
        rows.log_ratio_BT,
        rows.advantage_B,
        rows.mask_BT,
        rows.old_log_prob_BT,
        entropy_BT=part.entropy_BT,
        batch_sums=part.batch_sums,
        **settings.parameters,
    )
    scale_BT = coefficient_BT * rows.advantage_B.unsqueeze(1)
    if rollout_is_weights is not None:
        scale_BT = scale_BT * rollout_is_weights
    # verl multiplies by the mask, and NaN * 0 is NaN.
    scale_BT = scale_BT.masked_fill(~rows.mask_BT, 0.0)
    log_prob_BT = log_prob.to(scale_BT.dtype).masked_fill(~rows.mask_BT, 0.0)
    loss = agg_loss(
        loss_mat=-scale_BT * log_prob_BT,
        loss_mask=rows.mask_BT,
        loss_agg_mode=loss_agg_mode,
        **config.global_batch_info,
    )
    part.rows = rows
    part.sums.update(sums(name, rows, coefficient_BT))
    tokens = rows.mask_BT.sum().clamp(min=1)
    return loss, {"actor/ppo_kl": -(rows.log_ratio_BT.sum() / tokens).item()}
