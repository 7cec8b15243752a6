"""Whether trained weights are what training can have made of the initial ones.

No optimizer step of AdamW moves a weight farther than the learning rate times a factor that
follows from the betas alone (Kingma & Ba 2015, section 2.1, by Cauchy-Schwarz). Shards in a wrong
order, a part of an expert that is missing or another tensor's values are far outside of that; a
policy that training has ruined is not.
"""

import json
import math
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from respo.cli import UserError
from respo.config.schema import Optimizer
from respo.weight_files import weight_files

EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"
# A step and the moments behind it may be rounded to bfloat16, each to up to twice what they were.
ROUNDED_STEP = 4.0
# The weights are rounded to bfloat16 where training begins and where it ends.
ROUNDED_WEIGHT = 2.0**-7
# Elements that are compared at a time.
CHUNK = 1 << 26


def check_trained(folder: Path, initial: Path, optimizer: Optimizer, updates: int) -> None:
    """Refuse weights that training from the initial ones cannot have led to.

    Args:
        folder: the trained weights, in Hugging Face's format, with `config.json`.
        initial: the initial weights.
        optimizer: AdamW's settings.
        updates: policy updates between the two.

    Raises:
        UserError: tensors are missing, of another shape, not finite or too far from the initial
            ones, or the head is not the embedding where they are tied.
    """
    tied = _is_tied(folder)
    reach = adam_reach(optimizer, updates)
    shrink = optimizer.learning_rate * optimizer.weight_decay * updates
    with ExitStack() as stack:
        trained, first = (_open(path, stack) for path in (folder, initial))
        names = [
            {name for name in each if not (tied and name == HEAD)} for each in (trained, first)
        ]
        if odd := sorted(names[0] ^ names[1]):
            what = "missing" if odd[0] in names[1] else "not in the initial weights"
            raise UserError(f"{folder}: tensor {odd[0]} is {what}")
        if (
            tied
            and HEAD in trained
            and not torch.equal(_tensor(trained, HEAD), _tensor(trained, EMBEDDING))
        ):
            raise UserError(f"{folder}: {HEAD} is not {EMBEDDING}, which it is tied to")
        for name in sorted(names[0]):
            after, before = _tensor(trained, name), _tensor(first, name)
            if after.shape != before.shape:
                raise UserError(
                    f"{folder}: tensor {name} is {list(after.shape)} instead of "
                    f"{list(before.shape)}"
                )
            if not after.isfinite().all():
                raise UserError(f"{folder}: tensor {name} is not finite; the training had diverged")
            for new, old in _chunks(after, before):
                limit = ROUNDED_STEP * reach + (shrink + ROUNDED_WEIGHT) * old.abs()
                far = int(((new - old).abs() > limit).sum())
                if far:
                    raise UserError(
                        f"{folder}: tensor {name} is not the trained one: {far} of its weights "
                        f"are farther from the initial ones than {updates} updates at a learning "
                        f"rate of {optimizer.learning_rate:g} can have moved them"
                    )


def adam_reach(optimizer: Optimizer, updates: int) -> float:
    """Return the farthest that so many updates of Adam can move a weight, without weight decay.

    With bias correction, update t is the rate times sum_i w_i g_i / sqrt(sum_i u_i g_i^2), where w
    and u are the normalised weights of the t gradients in the two moments. That is at most
    sqrt(sum_i w_i^2 / u_i).
    """
    beta1, beta2 = optimizer.betas
    ratio = beta1**2 / beta2 if beta2 else math.inf
    total, series = 0.0, 0.0
    for step in range(1, updates + 1):
        series = 1.0 + ratio * series
        first = (1 - beta1) / (1 - beta1**step)
        second = (1 - beta2) / (1 - beta2**step)
        total += first * math.sqrt(series / second)
    return optimizer.learning_rate * total


def _is_tied(folder: Path) -> bool:
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        return bool(config.get("tie_word_embeddings", False))
    except (OSError, ValueError, AttributeError) as error:
        raise UserError(f"{folder}: config.json cannot be read ({error})") from None


def _open(folder: Path, stack: ExitStack) -> dict[str, Any]:
    """Return the open file of each tensor."""
    found: dict[str, Any] = {}
    for path in weight_files(folder):
        try:
            file = stack.enter_context(safe_open(path, "pt"))
        except (SafetensorError, OSError) as error:
            raise UserError(f"{path}: cannot be read ({error})") from None
        found |= dict.fromkeys(file.keys(), file)
    return found


def _tensor(files: dict[str, Any], name: str) -> Tensor:
    tensor: Tensor = files[name].get_tensor(name)
    return tensor


def _chunks(after: Tensor, before: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    pairs = zip(after.flatten().split(CHUNK), before.flatten().split(CHUNK), strict=True)
    return ((new.float(), old.float()) for new, old in pairs)
