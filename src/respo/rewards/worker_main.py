"""The process in which answers are compared: ``python -m respo.rewards.worker_main SECONDS MB``.

Reads one JSON request a line from standard input, ``{"gold": ..., "response": ...}``, and answers
with one JSON line: first ``{"ready": true}`` or ``{"error": text}``, then one verdict per request.
Ends when the input ends, that is, also when the parent process is gone. ``"last": true`` in a reply
asks for another worker: this one's memory is half full with what libraries remember, and an answer
must not fail for those before it.
"""

import gc
import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# A reply must fit into a pipe in one piece (4,096 bytes; a character takes at most 12).
MAX_EXTRACTED = 300
STATM = Path("/proc/self/statm")
PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 1


def main() -> None:
    """Serve requests until the input ends."""
    seconds, memory_mb = float(sys.argv[1]), int(sys.argv[2])
    # Keep the two pipes to ourselves: no library can disturb them by reading or printing.
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    silence = os.open(os.devnull, os.O_RDWR)
    os.dup2(silence, 0)
    os.dup2(silence, 1)

    def reply(message: dict[str, Any]) -> None:
        replies.write(json.dumps(message).encode() + b"\n")
        replies.flush()

    try:
        from respo.rewards.equivalence import math_equal
    except ImportError as error:
        reply({"error": f"{error}; install it with: pip install math-verify"})
        return
    limit_resources(memory_mb)
    logging.disable(logging.CRITICAL)
    math_equal("1", "1")  # builds the parser's tables, so that no answer's time is spent on it
    # The libraries stay; and expressions have few cycles: seldom search for those, 20 % faster.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    half_full = (address_space() + (memory_mb << 20)) // 2
    os.dup2(silence, 2)  # from here on nothing may print: an answer can be a huge number
    reply({"ready": True})

    for line in requests:
        request = json.loads(line)
        set_alarm(seconds + 1)
        message = verdict(math_equal, request["gold"], request["response"])
        if address_space() > half_full:
            reply(message | {"last": True})
            return
        reply(message)
        set_alarm(0)


def verdict(math_equal: Callable[[str, str], Any], gold: str, response: str) -> dict[str, Any]:
    """Return the fields of a `respo.rewards.workers.Verdict`."""
    try:
        found = math_equal(gold, response)
    except Exception:  # anything sympy can raise, out of memory and recursion included
        return {"correct": False, "extracted": None, "status": "failed"}
    return {
        "correct": found.correct,
        "extracted": found.extracted and found.extracted[:MAX_EXTRACTED],
        "status": "unparsed" if found.unparsed else "ok",
    }


def limit_resources(memory_mb: int) -> None:
    """Bound the address space and write no core dumps, where the system can (not on Windows)."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_mb << 20, memory_mb << 20))


def address_space() -> int:
    """Return the bytes in use, which `limit_resources` bounds; 0 where the system does not tell."""
    try:
        return int(STATM.read_bytes().split()[0]) * PAGE
    except OSError:
        return 0


def set_alarm(seconds: float) -> None:
    """Have the kernel end this process after ``seconds``, whatever it is doing; 0 cancels.

    The parent's own limit comes first. This one is for a worker whose parent was killed meanwhile:
    busy in one long multiplication, it cannot notice the end of its input.
    """
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)


if __name__ == "__main__":
    main()
