"""The rewards of training: +1 for a response that its verifier finds right, -1 for any other.

`strict_box` is the rule of the ReSPO study, `math_verify` (mathematical equivalence) that of MASPO;
`choice` compares the letter that a response chooses, `code` runs its program in a sandbox.
What Math-Verify cannot read, or what takes too long or too much memory, is not right. The verdicts
are those of the evaluation: the same functions, in the same killable processes, in the same limits.
"""

import atexit
import threading
from collections.abc import Callable, Sequence
from queue import LifoQueue
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from respo.rewards.choice import choice_letter
from respo.rewards.strict_box import strict_box
from respo.rewards.workers import SECONDS, Pair, Verdict, WorkerPool

if TYPE_CHECKING:
    from respo.rewards.code import CodePool

# Processes that compare answers for one trainer; trainers run side by side.
WORKERS = 4


class _Close(Protocol):
    def close(self) -> None: ...


Closable = TypeVar("Closable", bound=_Close)


class Checkers:
    """Compares single answers for any number of threads at a time.

    One that hangs holds up no other as long as a worker is free. Workers are started when they are
    needed: as many as there have been calls at the same time.

    Args:
        workers: most processes; further calls wait.
        seconds: wall-clock limit of one answer.
    """

    def __init__(self, workers: int = WORKERS, *, seconds: float = SECONDS) -> None:
        self._pools = [WorkerPool(1, seconds=seconds) for _ in range(workers)]
        # The last in, which has a process, is the first out.
        self._free: LifoQueue[WorkerPool] = LifoQueue()
        for pool in self._pools:
            self._free.put(pool)

    def check(self, gold: str, response: str) -> Verdict:
        """Compare a response with the gold answer.

        Raises:
            WorkerError: no worker could be started; the text says why.
        """
        pool = self._free.get()
        try:
            return pool.check([(gold, response)])[0]
        finally:
            self._free.put(pool)

    def close(self) -> None:
        """End all workers."""
        for pool in self._pools:
            pool.close()


class Shared(Generic[Closable]):
    """One object for a whole process, made when it is first asked for and closed at the exit."""

    def __init__(self, make: Callable[[], Closable]) -> None:
        self._make = make
        self._made: Closable | None = None
        self._lock = threading.Lock()

    def __call__(self) -> Closable:
        """Return the object."""
        with self._lock:  # or two threads would make one each
            if self._made is None:
                self._made = self._make()
                atexit.register(self._made.close)
            return self._made


shared_checkers = Shared(Checkers)
shared_pool = Shared(lambda: WorkerPool(WORKERS))


def _code_pool() -> "CodePool":
    from respo.rewards.code import CodePool  # where it is wanted only: it is for Linux

    return CodePool(WORKERS)


shared_code_pool = Shared(_code_pool)


def training_reward(verifier: str, gold: str, response: str) -> float:
    """Return the reward of one response, +1.0 or -1.0; may be called by many threads at a time.

    Args:
        verifier: `strict_box`, `math_verify`, `choice` or `code`.
        gold: the answer; of a code problem its tests (see `respo.rewards.code.problem`).
        response: the text.

    Raises:
        ValueError: there is no such verifier.
        WorkerError: answers cannot be compared here; the text says why.
    """
    if verifier == "strict_box":
        return strict_box(response, gold)
    if verifier == "math_verify":
        return _sign(shared_checkers().check(gold, response))
    if verifier == "choice":
        return 1.0 if choice_letter(response) == gold else -1.0
    if verifier == "code":
        return _sign(shared_code_pool().check([(gold, response)])[0])
    raise ValueError(f"verifier: {verifier!r} is none of strict_box, math_verify, choice and code")


def training_rewards(verifier: str, pairs: Sequence[Pair]) -> list[float]:
    """Return the rewards of a batch, in its order; equal pairs are compared once.

    Args:
        verifier: as in `training_reward`, whose errors this raises.
        pairs: ``(gold, response)``.
    """
    if verifier == "math_verify":
        return [_sign(verdict) for verdict in shared_pool().check(pairs)]
    if verifier == "code":
        return [_sign(verdict) for verdict in shared_code_pool().check(pairs)]
    return [training_reward(verifier, *pair) for pair in pairs]


def _sign(verdict: Verdict) -> float:
    return 1.0 if verdict.correct else -1.0
