"""How far a piece of work is: a training run, or the initial weights of a model.

A trainer leaves in its folder a lock with its process and host, the states that it continues from,
and with verl a log of updates; its output is in a log of the study. Nothing here takes the lock: a
trainer that starts at that moment would find it held.
"""

import hashlib
import json
import os
import re
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from respo.status import logs
from respo.training.verl import states, update_log

State = Literal["waiting", "running", "stopped", "failed", "done"]
OUTPUTS = ("train.json", "metrics.parquet", "branches.parquet")
# Text of `respo.training.lock.this_process`.
HOLDER = re.compile(r"process (?P<pid>\d+) on (?P<host>\S+?)(, Slurm job (?P<job>\S+))?")
# So long without a sign, a trainer on another machine is taken for dead: those of verl touch their
# lock every 30 seconds, local ones print every 5.
SILENT_SECONDS = 300.0
# Some hundred updates of verl.
UPDATES_BYTES = 1 << 19


@dataclass(frozen=True)
class Progress:
    """How far a piece of work is.

    Attributes:
        state: `stopped` and `failed` continue when the study is started again; initial weights
            begin again.
        done: updates done, or that the next start continues after.
        total: updates in all, 0 if unknown.
        seconds_left: estimate, None if there is none.
        message: why it failed, or on which other machine it runs or ran.
    """

    state: State
    done: int = 0
    total: int = 0
    seconds_left: float | None = None
    message: str = ""


def of_run(folder: Path, log: Path, updates: int, staleness: int) -> Progress:
    """Tell how far a training run is.

    Args:
        folder: of the run.
        log: of its training job.
        updates: policy updates of the whole run.
        staleness: updates per rollout batch, N.
    """
    if is_trained(folder):
        return Progress("done", updates, updates)
    return _unfinished(folder, log, updates, staleness)


def of_initial(folder: Path, log: Path) -> Progress:
    """Tell how far the initial weights of a model are."""
    if (folder / "initial.json").is_file():
        return Progress("done")
    found, lock = _unfinished(folder, log, 0, 1), folder / ".lock"
    told = logs.told(logs.lines(log))
    # A warm start leaves nothing to continue from: a killed one is known by its lock and its log.
    if told and found.state == "waiting" and _text(lock) and changed(log) >= changed(lock):
        return Progress("stopped", told.done, told.total, message=found.message)
    return found


def is_trained(folder: Path) -> bool:
    """Tell whether a run has all its results, from the configuration that it has now."""
    if not all((folder / name).is_file() for name in OUTPUTS):
        return False
    try:
        found = json.loads((folder / "train.json").read_bytes())["config_sha256"]
        return bool(found == hashlib.sha256((folder / "config.yaml").read_bytes()).hexdigest())
    except (OSError, ValueError, KeyError, TypeError, RecursionError):  # removed or damaged
        return False


def _unfinished(folder: Path, log: Path, updates: int, staleness: int) -> Progress:
    lock = folder / ".lock"
    holder = HOLDER.fullmatch(_text(lock))
    tail = logs.lines(log)
    if holder:
        elsewhere = holder["host"] != socket.gethostname()
        job = f", Slurm job {holder['job']}" if holder["job"] else ""
        where = f"on {holder['host']}{job}" if elsewhere else ""
        silent = _silent_seconds(folder, log)
        if silent < SILENT_SECONDS if elsewhere else _is_alive(int(holder["pid"])):
            return _running(folder, tail, updates, staleness, where)
        if where:
            where += f": no sign of life for {silent / 60:.0f} minutes"
        return _stopped(_saved(folder, staleness), updates, where)
    # The configuration was made anew: what an older one has left is not continued.
    config = changed(folder / "config.yaml")
    saved = _saved(folder, staleness, newer_than=config)
    if changed(log) >= config and (failure := logs.failure(tail)):
        return Progress("failed", saved, updates, message=failure)
    return _stopped(saved, updates)


def _stopped(saved: int, updates: int, where: str = "") -> Progress:
    """Return the state of what does not run: without anything to continue from it just waits."""
    return Progress("stopped" if saved else "waiting", saved, updates, message=where)


def _running(folder: Path, tail: list[str], updates: int, staleness: int, where: str) -> Progress:
    told = logs.told(tail)
    saved = _saved(folder, staleness)
    if (folder / update_log.FILE).is_file():
        done, left = _of_updates(folder, updates, staleness)
        return Progress("running", done or saved, updates, left, where)
    if told is None:
        return Progress("running", saved, updates, None, where)
    return Progress("running", told.done, told.total, told.seconds_left, where)


def _of_updates(folder: Path, updates: int, staleness: int) -> tuple[int, float | None]:
    """Return verl's last update, 0 if there is none, and an estimate of the seconds left."""
    rows = list(_rows(folder / update_log.FILE, staleness))
    if not rows:
        return 0, None
    done, ended = rows[-1]
    # What was made before the last start tells nothing of how fast it goes.
    begin = max(_last_start(folder / "verl" / "starts.jsonl"), rows[0][1])
    since = sum(1 for _, end in rows if end > begin)
    return done, (ended - begin) / since * (updates - done) if since else None


def _rows(path: Path, staleness: int) -> Iterator[tuple[int, float]]:
    """Yield number and end (Unix time) of the last updates that were made."""
    for line in logs.lines(path, UPDATES_BYTES):
        try:
            row = json.loads(line)
            place = (row["rollout_batch"] - 1) * staleness + row["mini_batch"]
            yield int(place), float(row["ended"])
        except (ValueError, KeyError, TypeError, RecursionError):
            continue  # half a line: it is being written, or its writer was killed


def _last_start(path: Path) -> float:
    try:
        return float(logs.lines(path)[-1])
    except (IndexError, ValueError):
        return 0.0


def _saved(folder: Path, staleness: int, newer_than: float = 0.0) -> int:
    """Return the update that the next start continues after, 0 if there is no state."""
    local = folder / "checkpoints" / "state"
    verl = folder / "verl" / "checkpoints"
    if changed(local) >= newer_than and (found := _numbers(local)):
        return max(found)
    if changed(verl) >= newer_than:
        return states.latest(verl) * staleness
    return 0


def _numbers(folder: Path) -> list[int]:
    try:
        return [int(path.name) for path in folder.iterdir() if path.name.isdecimal()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _is_alive(pid: int) -> bool:
    """Tell whether a process of this machine lives and is one of the project's."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    try:
        # Numbers of processes are used again.
        return b"respo" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has just ended, or there is no /proc
        return not Path("/proc/self").exists()


def _silent_seconds(folder: Path, log: Path) -> float:
    """Return how long nothing of a run has changed."""
    moving = [folder / ".lock", log, folder / update_log.FILE, folder / "checkpoints" / "state"]
    return time.time() - max(map(changed, moving))


def changed(path: Path) -> float:
    """Return when a file or folder was changed, Unix time; 0 if it is not there."""
    try:
        return path.stat().st_mtime
    except (FileNotFoundError, NotADirectoryError):
        return 0.0


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return ""
