"""The process in which answers are compared: ``python -m respo.rewards.worker_main SECONDS MB``.

Reads one JSON request a line from standard input, ``{"gold": ..., "response": ...}``, and answers
with one JSON line: first ``{"ready": true}`` or ``{"error": text}``, then one verdict per request.
Ends when the input ends, that is, also when the parent process is gone.
"""

import json
import logging
import os
import signal
import sys
from typing import Any

# A reply must fit into a pipe in one piece (4,096 bytes; a character takes at most 12).
MAX_EXTRACTED = 300


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
    os.dup2(silence, 2)  # from here on nothing may print: an answer can be a huge number
    reply({"ready": True})

    for line in requests:
        request = json.loads(line)
        set_alarm(seconds + 1)
        try:
            verdict = math_equal(request["gold"], request["response"])
        except Exception:  # anything sympy can raise, out of memory and recursion included
            reply({"correct": False, "extracted": None, "status": "failed"})
        else:
            reply(
                {
                    "correct": verdict.correct,
                    "extracted": verdict.extracted and verdict.extracted[:MAX_EXTRACTED],
                    "status": "unparsed" if verdict.unparsed else "ok",
                }
            )
        set_alarm(0)


def limit_resources(memory_mb: int) -> None:
    """Bound the address space and write no core dumps, where the system can (not on Windows)."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_mb << 20, memory_mb << 20))


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
