"""Policy updates of the responses to their own M prompts, on any number of data-parallel ranks.

verl 0.9.1 deals a whole rollout batch out to the ranks such that each has as many tokens, and each
rank cuts its share into N mini-batches. On more than one rank, most groups of responses would be
divided between updates. Here each mini-batch is dealt out by itself, as evenly as verl does it.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

from verl.trainer.ppo.v1 import trainer_base

Partitions = Callable[..., list[list[int]]]


def deal(
    workloads: Sequence[int], ranks: int, mini_batch: int, partitions: Partitions
) -> list[list[int]]:
    """Return the places of the responses that each rank takes, in the order of its updates.

    Args:
        workloads: of the responses of a rollout batch, in order.
        ranks: data-parallel ranks.
        mini_batch: responses of an update on all ranks; divides the number of responses.
        partitions: verl's function that deals out one set of responses.
    """
    shares: list[list[int]] = [[] for _ in range(ranks)]
    for start in range(0, len(workloads), mini_batch):
        dealt = partitions(
            workloads[start : start + mini_batch], k_partitions=ranks, equal_size=True
        )
        for share, places in zip(shares, dealt, strict=True):
            share += [start + place for place in places]
    return shares


def install() -> None:
    """Have verl's V1 trainer deal out mini-batches, once."""
    original = trainer_base.PPOTrainer._balance_batch
    if hasattr(original, "respo"):
        return

    @functools.wraps(original)
    def _balance_batch(trainer: Any, *args: Any, **given: Any) -> Any:
        config = trainer.config.actor_rollout_ref
        mini_batch = config.actor.ppo_mini_batch_size * config.rollout.n
        whole = trainer_base.get_seqlen_balanced_partitions

        def by_mini_batch(
            workloads: Sequence[int], k_partitions: int, equal_size: bool
        ) -> list[list[int]]:
            assert equal_size
            return deal(workloads, k_partitions, mini_batch, whole)

        trainer_base.get_seqlen_balanced_partitions = by_mini_batch  # type: ignore[assignment]
        try:
            return original(trainer, *args, **given)
        finally:
            trainer_base.get_seqlen_balanced_partitions = whole

    _balance_batch.respo = True  # type: ignore[attr-defined]
    trainer_base.PPOTrainer._balance_batch = _balance_batch  # type: ignore[method-assign, assignment]
