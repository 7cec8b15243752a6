"""Tells our policy losses what verl does not: the entropy, and sums over the whole mini-batch.

verl hands a policy loss the log-probabilities of one micro-batch. `install` wraps the one method
through which every engine trains on a mini-batch. For our losses, and for them alone, it first
collects the sums that the objective needs, adds the diagnostic sums to the metrics, and writes the
log of policy updates if one is wanted.
"""

import functools
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor

from respo import objectives
from respo.training.verl.entropy import without_gradient
from respo.training.verl.mini_batch import MicroBatch, Rows, check_entropy, micro_batch
from respo.training.verl.observer import Observer
from respo.training.verl.update_log import log_folder


def install(settings_type: type) -> None:
    """Wrap verl's `BaseEngine.train_batch`, once, for configurations of this type."""
    from verl.workers.engine.base import BaseEngine  # imports every engine that is installed

    original = BaseEngine.train_batch
    if hasattr(original, "respo"):
        return

    @functools.wraps(original)
    def train_batch(engine: Any, data: Any, loss_function: Callable) -> Any:
        # verl's workers bind the actor's configuration to the loss.
        config = getattr(loss_function, "keywords", {}).get("config")
        settings = getattr(config, "policy_loss", None)
        if not isinstance(settings, settings_type):
            return original(engine, data, loss_function)
        assert config is not None
        started = time.time()
        batch_sums = collect_sums(engine, data, settings)
        folder = log_folder()
        observe = Observer(engine) if folder else None
        with nullcontext() if config.entropy_coeff else without_gradient(engine):
            output = original(
                engine, data, functools.partial(informed, loss_function, batch_sums, observe)
            )
        if folder and observe:
            observe.write(folder, output, started)
        return output

    train_batch.respo = True  # type: ignore[attr-defined]
    BaseEngine.train_batch = train_batch  # type: ignore[method-assign, assignment]


def informed(
    loss_function: Callable,
    batch_sums: Tensor | None,
    observe: Callable[[MicroBatch, Any], None] | None,
    *args: Any,
    **given: Any,
) -> tuple[Tensor, dict[str, Any]]:
    """Call verl's loss function such that our policy loss in it knows the mini-batch.

    `observe` is called afterwards with what the policy loss has left and the micro-batch.
    """
    from verl.utils.metric import AggregationType, Metric

    if "model_output" not in given:  # distillation also calls it for other ends
        return loss_function(*args, **given)
    data = given["data"]
    with micro_batch(_entropy(given["model_output"], data), batch_sums) as part:
        loss, metrics = loss_function(*args, **given)
    if observe:
        observe(part, data)
    # verl adds such metrics up over micro-batches, but takes the mean over ranks.
    ranks = data["dp_size"]
    sums = {
        name: Metric(aggregation=AggregationType.SUM, value=value * ranks)
        for name, value in part.sums.items()
    }
    return loss, metrics | sums


def collect_sums(engine: Any, data: Any, settings: Any) -> Tensor | None:
    """Return the sums that the objective needs over the mini-batch of all ranks, or None.

    Ranks that share a part of the mini-batch (tensor, sequence, pipeline parallel) have the same
    sums, so only the data-parallel ranks add up. Ranks of a pipeline that see no log-probabilities
    have none and need none.
    """
    name = settings.objective
    if "batch_sums" not in objectives.needs(name):
        return None
    if getattr(engine.engine_config, "dynamic_context_parallel", False):
        raise ValueError(
            f"the objective {name} needs sums over the whole mini-batch, which "
            f"dynamic_context_parallel does not allow: switch it off"
        )
    parts: list[Tensor] = []

    def collect(model_output: Any, data: Any, **_: Any) -> tuple[Tensor, dict[str, Any]]:
        padded = data.select("old_log_probs", "advantages", "response_mask").to_padded_tensor()
        rows = Rows.of(
            padded["old_log_probs"],
            _padded(model_output["log_probs"], data),
            padded["advantages"],
            padded["response_mask"],
        )
        entropy_BT = _entropy(model_output, data)
        check_entropy(name, entropy_BT)
        part = objectives.batch_sums(
            name,
            rows.log_ratio_BT,
            rows.advantage_B,
            rows.mask_BT,
            rows.old_log_prob_BT,
            entropy_BT=entropy_BT,
            **settings.parameters,
        )
        assert part is not None
        parts.append(part)
        return part.new_zeros(()), {}

    engine.infer_batch(data, collect)
    if not parts:
        return None
    total = torch.stack(parts).sum(dim=0)
    torch.distributed.all_reduce(total, group=engine.get_data_parallel_group())
    return total


def _entropy(model_output: Any, data: Any) -> Tensor | None:
    entropy = model_output.get("entropy", None)
    return None if entropy is None else _padded(entropy.detach(), data)


def _padded(packed: Tensor, data: Any) -> Tensor:
    """Return the responses' part of a packed tensor of whole sequences, (B, T)."""
    from verl.workers.utils.padding import no_padding_2_padding

    return no_padding_2_padding(packed, data)
