"""What the log of policy updates ends in: the tables that the local trainer writes as well."""

import json
import math
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from respo.cli import UserError
from respo.training.local.metrics import BRANCH_SUMS, METRICS, no_branches
from respo.training.starts import Start
from respo.training.verl.update_log import Row


def metrics_rows(rows: Sequence[Row], starts: Sequence[float]) -> list[dict[str, float]]:
    """Return the metrics of every update, with the local trainer's columns and meaning.

    A rollout batch took the time from the end of the last update before it to the end of its own
    last one. What of this was none of its updates (sampling, log-probabilities, saving) is shared
    by its N updates. The first rollout batch after a start begins with the start: Ray, vLLM and the
    model are loaded in that time too. `dropped_groups` is NaN: verl has no dynamic sampling that
    counts them. What the log has not, is NaN: `reference_kl` without a KL loss.

    Args:
        rows: the updates in order, from `update_log.read`.
        starts: when the trainer was started, Unix time, in order; the first is before all updates.
    """
    seconds = list(_seconds(rows, starts))
    return [
        {name: _number(row.get(name)) for name in METRICS}
        | {
            "rollout_batch": float(row["rollout_batch"] - 1),
            "tokens_per_second": row["tokens"] / each,
            "seconds": each,
        }
        for row, each in zip(rows, seconds, strict=True)
    ]


def branches(rows: Sequence[Row]) -> Tensor:
    """Return the sums by branch of every update, for `branches_table`."""
    if not rows:
        return no_branches()
    each = [[row["branches"][kind] for kind in BRANCH_SUMS] for row in rows]
    return torch.tensor(each, dtype=torch.float64)


def _seconds(rows: Sequence[Row], starts: Sequence[float]) -> Iterator[float]:
    ended = -math.inf
    for _, group in groupby(rows, key=lambda row: row["rollout_batch"]):
        batch = list(group)
        first = batch[0]["ended"] - batch[0]["update_seconds"]
        begun = max([ended, *(start for start in starts if start <= first)])
        ended = batch[-1]["ended"]
        alone = sum(row["update_seconds"] for row in batch)
        # Clocks of two nodes need not agree.
        share = max(0.0, ended - begun - alone) / len(batch)
        yield from (row["update_seconds"] + share for row in batch)


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)


def note_start(path: Path, start: Start) -> None:
    """Add a start, and this moment in Unix time, to the file of starts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(f"{json.dumps({'time': time.time(), **start})}\n")


def read_starts(path: Path) -> tuple[list[float], list[Start]]:
    """Return when the trainer was started, Unix time, and what else is known of each start.

    Raises:
        UserError: the file is missing or damaged.
    """
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        # Version 0.1.0 noted the time only.
        starts = [line if isinstance(line, dict) else {"time": line} for line in lines]
        return [float(start.pop("time")) for start in starts], starts
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(
            f"{path}: the times of the run's starts cannot be read ({error}); delete "
            f"{path.parent} to train it anew"
        ) from None
