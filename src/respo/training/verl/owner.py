"""Whether the holder of a run's lock, as its text names it, is gone.

On one machine the kernel knows. Some shared file systems lock for each machine alone, so of a
holder on another one, Slurm is asked, and the lock file's age: its holder touches it regularly.
"""

import os
import re
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from respo.cli import UserError

HEARTBEAT_SECONDS = 30.0
# Age of a lock file of which nobody can be asked whether its holder lives.
DEAD_SECONDS = 300.0
HOLDER = re.compile(r"process \d+ on (?P<host>\S+?)(, Slurm job (?P<job>\d+))?")


class Heartbeat:
    """Called often, it touches a lock file of this process regularly."""

    def __init__(self, lock: Path) -> None:
        self._lock = lock
        self._last = time.monotonic()

    def __call__(self) -> None:
        """Touch the file if it is time."""
        now = time.monotonic()
        if now - self._last > HEARTBEAT_SECONDS:
            self._last = now
            os.utime(self._lock)


def check_gone(lock: Path, holder: str) -> None:
    """Raise UserError if the holder of a lock that the kernel of this machine gives may live.

    Args:
        lock: the lock file.
        holder: its text, from `respo.training.lock.this_process`.
    """
    named = HOLDER.fullmatch(holder)
    if not named or named["host"] == socket.gethostname():
        return
    job = named["job"]
    if job and job == os.environ.get("SLURM_JOB_ID"):
        return  # this job was put back into the queue, and runs once at a time
    lives = _is_in_queue(job) if job else None
    if lives is None:
        lives = _age(lock) < DEAD_SECONDS
    if lives:
        raise UserError(
            f"{lock.parent}: is being trained by {holder}. If that is gone, wait "
            f"{DEAD_SECONDS / 60:g} minutes or delete {lock}."
        )


def _is_in_queue(job: str) -> bool | None:
    """Tell whether Slurm has the job, finished ones left out; None if Slurm cannot be asked."""
    command = ["squeue", "--noheader", "--jobs", job, "--format", "%T"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return None
    if answer.returncode:
        return False if "Invalid job id" in answer.stderr else None
    return bool(answer.stdout.strip())


def _age(path: Path) -> float:
    """Return the seconds since a file was touched, by the clock of its file system."""
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".now") as file:
        return os.fstat(file.fileno()).st_mtime - path.stat().st_mtime
