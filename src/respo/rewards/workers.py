"""Killable processes that compare answers, so that none can hang, crash or flood the caller.

Each worker is a fresh interpreter (never a fork of a process that may hold threads or a GPU) behind
two pipes that carry JSON lines. An answer has a limit of wall-clock time and of memory. A worker
that exceeds it is replaced; its answer counts as wrong, all others are unaffected. One that dies is
replaced too, and its answer tried once more: the system may have killed it for another's memory.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from types import TracebackType
from typing import Any, NamedTuple

Pair = tuple[str, str]  # gold answer, response

SECONDS = 30.0  # for one answer (ReSPO, App. D.2)
MEMORY_MB = 2048  # for one worker; it needs about 100 itself
# Pairs that a worker is handed at a time, if they fit into a pipe: it need not wait for each.
AHEAD, AHEAD_CHARACTERS = 16, 1 << 14
STARTS = 3  # that may die one after the other, say, since the system kills for memory
START_SECONDS = 120.0  # a worker imports sympy, slowly from a cold network disk


class Verdict(NamedTuple):
    """What became of one response.

    ``status`` is ``ok`` (compared), ``unparsed`` (no mathematical reading), ``timeout`` or
    ``failed`` (out of memory, or two workers died at it). Only ``ok`` can be correct. ``extracted``
    is the text taken for the answer, in Math-Verify's normal form and cut to 300 characters.
    """

    correct: bool
    extracted: str | None
    status: str


_DIED = Verdict(False, None, "failed")


class WorkerError(RuntimeError):
    """No worker can be started."""


class WorkerPool:
    """A pool of workers, started on demand and kept until `close`; usable from any thread.

    Args:
        workers: number of processes; default: the processors this process may use.
        seconds: wall-clock limit of one answer.
        memory_mb: limit of a worker's address space, where the system can limit it.
    """

    def __init__(
        self, workers: int | None = None, *, seconds: float = SECONDS, memory_mb: int = MEMORY_MB
    ) -> None:
        self.size = _processors() if workers is None else workers
        self.seconds, self.memory_mb = seconds, memory_mb
        if self.size < 1 or not 0 < seconds < float("inf") or memory_mb < 256:
            raise ValueError(
                "a pool needs at least one worker, a finite time above 0 seconds and at least "
                f"256 MB, not {self.size}, {seconds} and {memory_mb}"
            )
        self._lock = threading.Lock()
        self._workers: list[_Worker] = []

    def check(
        self, pairs: Sequence[Pair], progress: Callable[[int, int], None] | None = None
    ) -> list[Verdict]:
        """Compare each response with its gold answer.

        Equal pairs are compared once.

        Args:
            pairs: ``(gold, response)``.
            progress: called with (finished pairs, all pairs) after each comparison.

        Returns:
            One verdict per pair, in the order of ``pairs``.

        Raises:
            WorkerError: no worker could be started; the text says why.
        """
        with self._lock:
            try:
                verdicts = self._check(Counter(pairs), progress or (lambda done, total: None))
            except BaseException:
                self._stop()  # no late reply may be taken for the next call's
                raise
        return [verdicts[pair] for pair in pairs]

    def close(self) -> None:
        """End all workers."""
        with self._lock:
            self._stop()

    def __enter__(self) -> "WorkerPool":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _check(
        self, count: Counter[Pair], progress: Callable[[int, int], None]
    ) -> dict[Pair, Verdict]:
        waiting = _Waiting(count)
        verdicts: dict[Pair, Verdict] = {}
        died: set[Pair] = set()  # pairs that a worker has died at
        lost = 0  # starts since the last one that went well
        done, total = 0, count.total()
        while len(verdicts) < len(count):
            left = len(count) - len(verdicts)
            self._replace_dead(wanted=min(self.size, left))
            for worker in self._workers:
                if worker.state == "idle" and waiting:
                    others = {other.gold for other in self._workers if other is not worker}
                    number = min(AHEAD, left // (2 * self.size))
                    worker.send(waiting.take(number, worker.gold, others))
            for worker, has_written in self._wait():
                was_starting = worker.state == "starting"
                for pair, verdict in worker.receive() if has_written else worker.give_up("timeout"):
                    if verdict is _DIED and pair not in died:
                        died.add(pair)
                        waiting.put_back([pair])
                        continue
                    verdicts[pair] = verdict
                    done += count[pair]
                    progress(done, total)
                if worker.state == "dead":
                    waiting.put_back(worker.pairs)
                if was_starting:
                    lost = lost + 1 if worker.state == "dead" else 0
                    if lost == STARTS:
                        raise _no_start(f"exit code {worker.process.wait()}")
        return verdicts

    def _wait(self) -> list[tuple["_Worker", bool]]:
        """Wait until a worker writes, ends or is overdue; return which, and whether it has written.

        A reply that is there counts, even if this process looks for it late.
        """
        patience = min(worker.deadline for worker in self._workers) - time.monotonic()
        ready = wait(
            [worker.replies.fileno() for worker in self._workers],
            None if patience == float("inf") else max(0.0, patience),
        )
        now = time.monotonic()
        written = [(worker, worker.replies.fileno() in ready) for worker in self._workers]
        return [(worker, has) for worker, has in written if has or worker.deadline <= now]

    def _replace_dead(self, wanted: int) -> None:
        for worker in self._workers:
            if worker.state == "idle" and worker.process.poll() is not None:
                worker.state = "dead"  # killed from outside while it had nothing to do
            if worker.state == "dead":
                worker.kill()
        self._workers = [worker for worker in self._workers if worker.state != "dead"]
        while len(self._workers) < wanted:
            self._workers.append(_Worker(self.seconds, self.memory_mb))

    def _stop(self) -> None:
        for worker in self._workers:
            worker.kill()
        self._workers = []


class _Waiting:
    """Pairs still to be compared, by gold answer: workers remember what they have compared."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        self._by_gold: dict[str, deque[Pair]] = {}
        for pair in pairs:
            self._by_gold.setdefault(pair[0], deque()).append(pair)

    def __bool__(self) -> bool:
        return bool(self._by_gold)

    def take(self, number: int, last: str, others: set[str]) -> list[Pair]:
        """Return up to ``number`` short pairs, at least one, with one gold answer.

        It is the ``last`` one, if possible; else one that is none of the ``others``.
        """
        gold = last
        if gold not in self._by_gold:
            first = next(iter(self._by_gold))
            gold = next((gold for gold in self._by_gold if gold not in others), first)
        pairs = self._by_gold[gold]
        taken = [pairs.popleft()]
        characters = len(taken[0][1])
        while pairs and len(taken) < number and characters + len(pairs[0][1]) <= AHEAD_CHARACTERS:
            taken.append(pairs.popleft())
            characters += len(taken[-1][1])
        if not pairs:
            del self._by_gold[gold]
        return taken

    def put_back(self, pairs: Sequence[Pair]) -> None:
        """Take back pairs that a worker had not come to."""
        for pair in reversed(pairs):
            self._by_gold.setdefault(pair[0], deque()).appendleft(pair)


class _Worker:
    """One process: ``starting``, then ``idle`` and ``busy`` by turns, at last ``dead``."""

    def __init__(self, seconds: float, memory_mb: int) -> None:
        self.process = subprocess.Popen(
            # -P: a file of the working directory must not pass for a library.
            [sys.executable, "-P", "-m", "respo.rewards.worker_main", str(seconds), str(memory_mb)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # sympy orders some terms by hash; the verdict must not depend on the process.
            env={**os.environ, "PYTHONHASHSEED": "0"},
            start_new_session=True,  # Ctrl-C is the parent's to handle
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.requests, self.replies = self.process.stdin, self.process.stdout
        self.state = "starting"
        self.pairs: deque[Pair] = deque()  # the one at work, and those after it
        self.gold = ""  # of these pairs, or of the last ones
        self.seconds = seconds
        self.deadline = time.monotonic() + START_SECONDS  # of the pair at work
        self._received = b""

    def send(self, pairs: list[Pair]) -> None:
        """Hand over pairs with one gold answer. If the worker dies, `receive` will notice."""
        self.state, self.pairs, self.gold = "busy", deque(pairs), pairs[0][0]
        self.deadline = time.monotonic() + self.seconds
        requests = [json.dumps({"gold": gold, "response": text}) + "\n" for gold, text in pairs]
        with suppress(BrokenPipeError):
            self.requests.write("".join(requests).encode())
            self.requests.flush()

    def receive(self) -> list[tuple[Pair, Verdict]]:
        """Take what has come: verdicts on the first of ``pairs``, which leave these.

        Raises:
            WorkerError: the worker cannot start, however often.
        """
        chunk = os.read(self.replies.fileno(), 65536)
        if not chunk:
            return self.give_up("timeout" if time.monotonic() >= self.deadline else "failed")
        *lines, self._received = (self._received + chunk).split(b"\n")
        messages = [json.loads(line) for line in lines]
        return [found for message in messages if (found := self._understand(message))]

    def _understand(self, message: dict[str, Any]) -> tuple[Pair, Verdict] | None:
        if "error" in message:
            raise WorkerError(f"answers cannot be compared: {message['error']}")
        if "ready" in message:
            self.state, self.deadline = "idle", float("inf")
            return None
        pair = self.pairs.popleft()
        if message.pop("last", False):
            self.state, self.deadline = "dead", float("inf")
        elif self.pairs:
            self.deadline = time.monotonic() + self.seconds
        else:
            self.state, self.deadline = "idle", float("inf")
        return pair, Verdict(**message)

    def give_up(self, status: str) -> list[tuple[Pair, Verdict]]:
        """Count the worker as dead, and the pair that it was at, if any, as ``status``.

        Raises:
            WorkerError: it took too long to start.
        """
        if self.state == "starting" and status == "timeout":
            raise _no_start("it took too long")
        self.state, self.deadline = "dead", float("inf")
        verdict = _DIED if status == "failed" else Verdict(False, None, status)
        return [(self.pairs.popleft(), verdict)] if self.pairs else []

    def kill(self) -> None:
        """End the process and close its pipes."""
        self.process.kill()
        self.process.wait()
        self.replies.close()
        with suppress(BrokenPipeError):  # an unsent rest of a request
            self.requests.close()


def _no_start(why: str) -> WorkerError:
    return WorkerError(f"a process for comparing answers did not start: {why}")


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
