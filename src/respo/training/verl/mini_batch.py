"""What a policy loss of verl works on, and what verl does not tell it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import torch
from torch import Tensor

from respo.objectives import needs


@dataclass(frozen=True)
class Rows:
    """The responses of a micro-batch as the objectives want them; 0 at masked tokens."""

    old_log_prob_BT: Tensor
    log_ratio_BT: Tensor
    advantage_B: Tensor
    mask_BT: Tensor

    @classmethod
    def of(
        cls, old_log_prob: Tensor, log_prob: Tensor, advantages: Tensor, response_mask: Tensor
    ) -> "Rows":
        """Take verl's padded tensors, (B, T) each, in float32 or float64.

        Raises:
            ValueError: the advantage differs within a response.
        """
        mask_BT = response_mask.bool()
        dtype = torch.promote_types(log_prob.dtype, torch.float32)
        old_log_prob_BT = old_log_prob.to(dtype).masked_fill(~mask_BT, 0.0)
        log_ratio_BT = log_prob.to(dtype).masked_fill(~mask_BT, 0.0) - old_log_prob_BT
        first_B1 = mask_BT.int().argmax(dim=1, keepdim=True)
        advantages = advantages.to(dtype)
        advantage_B = advantages.gather(1, first_B1).squeeze(1)
        advantage_B = advantage_B.masked_fill(~mask_BT.any(dim=1), 0.0)
        if ((advantages != advantage_B.unsqueeze(1)) & mask_BT).any():
            raise ValueError(
                "the objectives take one advantage per response, which these are not: set "
                "algorithm.adv_estimator=grpo"
            )
        return cls(old_log_prob_BT, log_ratio_BT, advantage_B, mask_BT)


@dataclass
class MicroBatch:
    """What the engine knows of the micro-batch that a loss sees, and what the loss leaves here."""

    entropy_BT: Tensor | None = None
    batch_sums: Tensor | None = None
    sums: dict[str, float] = field(default_factory=dict)
    rows: Rows | None = None


_current: ContextVar[MicroBatch | None] = ContextVar("respo_micro_batch", default=None)


def current() -> MicroBatch:
    """Return the micro-batch that is being trained on; an empty one outside of training."""
    return _current.get() or MicroBatch()


@contextmanager
def micro_batch(entropy_BT: Tensor | None, batch_sums: Tensor | None) -> Iterator[MicroBatch]:
    """Let the policy losses called inside know these."""
    part = MicroBatch(entropy_BT, batch_sums)
    token = _current.set(part)
    try:
        yield part
    finally:
        _current.reset(token)


def check_entropy(objective: str, entropy_BT: Tensor | None) -> None:
    """Raise ValueError if the objective needs the entropy and it is not there."""
    if "entropy_BT" in needs(objective) and entropy_BT is None:
        raise ValueError(
            f"the objective {objective} needs the entropy of the policy: set "
            f"actor_rollout_ref.actor.calculate_entropy=True"
        )


def check_batch_sums(objective: str, batch_sums: Tensor | None) -> None:
    """Raise ValueError if the objective needs sums over the mini-batch and they are not there."""
    if "batch_sums" in needs(objective) and batch_sums is None:
        raise ValueError(
            f"the objective {objective} needs sums over the whole mini-batch, which only "
            f"train_batch of verl's engines collects"
        )
