"""The log of a run's policy updates: `updates.jsonl`, a line of JSON for every mini-batch.

verl reports a step, which is N updates, by their means. A training worker writes this log into the
folder that RESPO_RUN_METRICS names, see `respo.training.verl.update_metrics` for what is in it. A
resumed run writes the updates since its last checkpoint again.
"""

import json
import math
import os
from pathlib import Path
from typing import Any

from respo.cli import UserError
from respo.files import write_text

FILE = "updates.jsonl"
FOLDER = "RESPO_RUN_METRICS"

Row = dict[str, Any]


def log_folder() -> Path | None:
    """Return the folder of the log, or None if none is wanted."""
    folder = os.environ.get(FOLDER)
    return Path(folder) if folder else None


def append(folder: Path, row: Row) -> None:
    """Add an update, in one write; numbers that are not finite become null."""
    line = json.dumps({key: _finite(value) for key, value in row.items()}, allow_nan=False) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / FILE).open("ab+") as file:
        # A line that a killed process has left half-written must not swallow this one.
        if file.tell() and not _ends_with_newline(file):
            line = "\n" + line
        file.write(line.encode())


def read(folder: Path, staleness: int) -> list[Row]:
    """Return the updates in order, each with its number `update`, counted from 1.

    Of an update that was made again after a restart, and of those after it, the last one counts.

    Args:
        folder: where the log is; without a log there are no updates.
        staleness: the updates per rollout batch, N.

    Raises:
        UserError: an update is missing, or the log is not one of such a run.
    """
    path = folder / FILE
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return []
    rows: list[Row] = []
    for number, line in enumerate(lines, start=1):
        try:
            row = json.loads(line)
        except (
            ValueError,
            RecursionError,
        ):  # half a line: its update was made again, or is missing below
            continue
        if not isinstance(row, dict) or not _is_place(row, staleness):
            raise UserError(f"{path}: line {number} is not an update of a run with N = {staleness}")
        update = (row["rollout_batch"] - 1) * staleness + row["mini_batch"]
        if update > len(rows) + 1:
            raise UserError(
                f"{path}: update {len(rows) + 1} is missing before line {number}. "
                "Delete the run's folder and train it anew."
            )
        del rows[update - 1 :]
        rows.append({"update": update, **row})
    return rows


def cut(folder: Path, staleness: int, updates: int) -> None:
    """Keep the first updates of a log only: those that a state contains which is continued.

    Raises:
        UserError: it has fewer, or is damaged.
    """
    path = folder / FILE
    rows = read(folder, staleness)
    if len(rows) < updates:
        raise UserError(
            f"{path}: has {len(rows)} updates, and the state that training would continue from "
            f"comes after update {updates}. Delete {folder / 'verl'} to train the run anew."
        )
    if rows:
        kept = ({key: row[key] for key in row if key != "update"} for row in rows[:updates])
        write_text(path, "".join(json.dumps(row) + "\n" for row in kept))


def _is_place(row: Row, staleness: int) -> bool:
    rollout_batch, mini_batch = row.get("rollout_batch"), row.get("mini_batch")
    return (
        isinstance(rollout_batch, int)
        and isinstance(mini_batch, int)
        and rollout_batch >= 1
        and 1 <= mini_batch <= staleness
    )


def _ends_with_newline(file: Any) -> bool:
    file.seek(-1, os.SEEK_END)
    return bool(file.read(1) == b"\n")


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
