"""A job whose engine hangs ends by itself, so that it can be started again."""

import faulthandler
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

# Before the first sign of life weights are loaded and code is compiled.
START_SECONDS = 7200.0
REARM_SECONDS = 1.0
STANDARD_ERROR = 2


@contextmanager
def end_if_silent(seconds: float) -> Iterator[Callable[[], None]]:
    """End this process, with exit code 1, if nothing is heard of the work for too long.

    The stacks of all its threads are written to standard error before, after a line such as
    `Timeout (0:30:00)!`. A thread sees to it that needs nothing of Python: a call that never
    comes back from the GPU does not hold it up.

    Args:
        seconds: the longest time between two signs of life; the first may take two hours.

    Yields:
        What the work calls as a sign of life, as often as it likes.
    """
    armed = float("-inf")

    def arm(patience: float) -> None:
        faulthandler.dump_traceback_later(patience, exit=True, file=STANDARD_ERROR)

    def alive() -> None:
        nonlocal armed
        now = time.monotonic()
        if now - armed >= REARM_SECONDS:
            armed = now
            arm(seconds)

    arm(max(seconds, START_SECONDS))
    try:
        yield alive
    finally:
        faulthandler.cancel_dump_traceback_later()
