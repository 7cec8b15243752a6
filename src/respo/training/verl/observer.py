"""Watches the policy updates of verl's engines and writes the log of them."""

from pathlib import Path
from typing import Any

import torch

from respo.training.verl.mini_batch import MicroBatch
from respo.training.verl.update_log import append
from respo.training.verl.update_metrics import Tally, join, update_row


class Observer:
    """Sees the micro-batches of one update on one rank, to write of the whole update."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self._ends = end_tokens(engine.model_config)
        self._tally = Tally()

    def __call__(self, part: MicroBatch, data: Any) -> None:
        """See a micro-batch on which our policy loss has been called."""
        self._tally.add(part, data, self._ends)

    def write(self, folder: Path, output: Any, started: float) -> None:
        """Add the update to the log in `folder`: one rank does, and all must call it.

        Ranks of a pipeline that see no losses have nothing to add. Of those that share a part of
        the mini-batch, one writes.
        """
        if not self._tally.columns:
            return
        engine = self._engine
        parts: list[Any] = [None] * engine.get_data_parallel_size()
        torch.distributed.all_gather_object(
            parts, self._tally, group=engine.get_data_parallel_group()
        )
        if engine.is_mp_src_rank_with_outputs() and engine.get_data_parallel_rank() == 0:
            row = update_row(join(parts), output["metrics"]["grad_norm"], started)
            # The updates of one step of verl come one after the other.
            step, count = getattr(engine, "respo_last_update", (0, 0))
            count = count + 1 if step == row["rollout_batch"] else 1
            engine.respo_last_update = row["rollout_batch"], count
            append(folder, {"rollout_batch": row.pop("rollout_batch"), "mini_batch": count, **row})


def end_tokens(model_config: Any) -> set[int]:
    """Return the tokens that end a response, as the model's files name them."""
    ends: set[int] = set()
    for source in (model_config.generation_config, model_config.hf_config):
        named = getattr(source, "eos_token_id", None)
        ends.update([named] if isinstance(named, int) else named or [])
    return ends
