"""One trainer at a time in a run folder."""

import fcntl
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

POLL_SECONDS = 0.5


@contextmanager
def exclusive(path: Path, on_wait: Callable[[str], None], on_poll: Callable[[], None]) -> Iterator:
    """Hold the lock at ``path``; while another process holds it, wait.

    The kernel releases the lock when its holder dies, however it dies, so a lock is never stale.
    The file stays: deleting it would let two processes lock two files of the same name.

    Args:
        path: the lock file; it holds the holder's process id and host as text.
        on_wait: called once with that text if there is somebody to wait for.
        on_poll: called while waiting; may raise to give up.
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
                    file.seek(0)
                    on_wait(file.read().strip() or "another process")
                    waiting = True
                on_poll()
                time.sleep(POLL_SECONDS)
        try:
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
            file.flush()
        except OSError as error:
            error.filename = str(path)
            raise
        yield
