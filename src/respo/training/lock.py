"""One trainer at a time in a run folder."""

import fcntl
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

POLL_SECONDS = 0.5


@contextmanager
def exclusive(
    path: Path,
    on_wait: Callable[[str], None],
    on_poll: Callable[[], None],
    on_stale: Callable[[str], None] = lambda holder: None,
) -> Iterator[None]:
    """Hold the lock at ``path``; while another process holds it, wait.

    The kernel releases the lock when its holder dies, however it dies, so a lock is never stale.
    The file stays: deleting it would let two processes lock two files of the same name. It is
    empty when its last holder ended by itself.

    Args:
        path: the lock file; it holds the holder's process id and host, and Slurm job if there is
            one, as text.
        on_wait: called once with that text if there is somebody to wait for; may raise.
        on_poll: called while waiting; may raise to give up.
        on_stale: called with the text of a holder that was killed; may raise.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="utf-8") as file:
        waiting = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not waiting:
                    on_wait(_read(file) or "another process")
                    waiting = True
                on_poll()
                time.sleep(POLL_SECONDS)
        left = _read(file)
        if left:
            on_stale(left)
        try:
            file.truncate(0)
            # At once: what stays in a buffer of Python would fail again, unnamed, when it closes.
            os.write(file.fileno(), f"{this_process()}\n".encode())
        except OSError as error:
            error.filename = str(path)
            raise
        try:
            yield
        finally:
            file.truncate(0)


def this_process() -> str:
    """Return what a lock file says of its holder."""
    text = f"process {os.getpid()} on {socket.gethostname()}"
    job = os.environ.get("SLURM_JOB_ID")
    return f"{text}, Slurm job {job}" if job else text


def _read(file: IO[str]) -> str:
    file.seek(0)
    return file.read().strip()
