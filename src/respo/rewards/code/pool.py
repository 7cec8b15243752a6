"""Verdicts on many programs, several at a time."""

import os
import sys
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from importlib.metadata import version
from types import TracebackType

from respo.rewards.code.compare import same_output, same_value
from respo.rewards.code.find import find_sandbox
from respo.rewards.code.inside.runner import Task
from respo.rewards.code.kinds import TEMPORARY_BYTES, UNSANDBOXED, Kind
from respo.rewards.code.layout import numpy_folders
from respo.rewards.code.problem import Problem, read_problem
from respo.rewards.code.process import SandboxProcess
from respo.rewards.code.program import last_program
from respo.rewards.workers import Pair, Verdict, WorkerError

SECONDS = 6.0  # for one test (LiveCodeBench, where it is wall-clock time)
MEMORY_MB = 2048  # for a process, and for all of a program together
OUTPUT_BYTES = 16 << 20
PROCESSES = 16
# A busy machine must not turn a right program into a wrong one.
_WALL_TIMES, _WALL_MORE = 4, 2.0
_EXTRACTED = 300  # characters
_STATUS = {"timeout": "timeout", "memory": "failed", "output": "failed", "died": "failed"}


class CodePool:
    """Judges programs, each in a sandbox of its own; usable from any thread.

    Args:
        workers: programs at a time; default: the processors this process may use.
        seconds: limit of one test, of the processor time of its program and all that it starts.
            Its wall-clock limit, for those that wait, is four times that and two seconds more.
        memory_mb: limit of the address space of each process of a program, and of what all of them
            have in use.
        unsandboxed: run the programs with no sandbox, with all rights of this process.
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        seconds: float = SECONDS,
        memory_mb: int = MEMORY_MB,
        unsandboxed: bool = False,
    ) -> None:
        self.size = len(os.sched_getaffinity(0)) if workers is None else workers
        self.seconds, self.memory_mb = seconds, memory_mb
        if self.size < 1 or not 0 < seconds < float("inf") or memory_mb < 256:
            raise ValueError(
                "a pool needs at least one worker, a finite time above 0 seconds and at least "
                f"256 MB, not {self.size}, {seconds} and {memory_mb}"
            )
        self._free = threading.Semaphore(self.size)
        self._unsandboxed = unsandboxed
        if unsandboxed:
            warnings.warn(
                "programs that a model wrote run without a sandbox, with all rights of this user",
                RuntimeWarning,
                stacklevel=2,
            )

    @property
    def sandbox(self) -> str:
        """The kind of sandbox, and the Python and numpy that programs have, for the record.

        Raises:
            WorkerError: as `check`.
        """
        numpy = f"numpy {version('numpy')}" if numpy_folders() else "no numpy"
        return f"{self._kind().name}, Python {sys.version.split()[0]}, {numpy}"

    def check(
        self, pairs: Sequence[Pair], progress: Callable[[int, int], None] | None = None
    ) -> list[Verdict]:
        """Judge the program of each response. Equal pairs are judged once.

        Args:
            pairs: the tests of the problem (see `respo.rewards.code.problem`), and the response.
            progress: called with (finished pairs, all pairs) after each program.

        Returns:
            One verdict per pair, in the order of ``pairs``. Its status is ``ok`` (a program was
            judged), ``unparsed`` (there is none), ``timeout`` or ``failed`` (too much memory or
            output). What it extracted is the program, cut to 300 characters.

        Raises:
            WorkerError: there is no sandbox, or one does not start; the text says why.
            ValueError: tests that are none.
        """
        kind = self._kind()
        count = Counter(pairs)
        verdicts: dict[Pair, Verdict] = {}
        done = 0
        with ThreadPoolExecutor(self.size) as threads:
            jobs: dict[Future[Verdict], Pair] = {
                threads.submit(self._judge, kind, pair): pair for pair in count
            }
            try:
                for job in as_completed(jobs):
                    verdicts[jobs[job]] = job.result()
                    done += count[jobs[job]]
                    if progress:
                        progress(done, len(pairs))
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                raise
        return [verdicts[pair] for pair in pairs]

    def close(self) -> None:
        """Do nothing: between two calls of `check` there are no processes."""

    def __enter__(self) -> "CodePool":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _kind(self) -> Kind:
        return UNSANDBOXED if self._unsandboxed else find_sandbox()

    def _judge(self, kind: Kind, pair: Pair) -> Verdict:
        problem, program = read_problem(pair[0]), last_program(pair[1])
        if program is None:
            return Verdict(correct=False, extracted=None, status="unparsed")
        with self._free:
            correct, status = judge(kind, problem, program, self.seconds, self.memory_mb)
        return Verdict(correct=correct, extracted=program[:_EXTRACTED], status=status)


def judge(
    kind: Kind, problem: Problem, program: str, seconds: float, memory_mb: int
) -> tuple[bool, str]:
    """Run a program on the tests of a problem up to the first that it fails.

    If its sandbox ends before it, something outside may have ended that: it is run once more.

    Returns:
        Whether it passes all, and the status of the verdict.

    Raises:
        WorkerError: the sandbox does not start.
    """
    task = Task(
        program=program,
        function=problem.function,
        memory=memory_mb << 20,
        file=TEMPORARY_BYTES,
        output=OUTPUT_BYTES,
        seconds=seconds,
        processes=PROCESSES,
    )
    correct, status = _run(kind, problem, task)
    if status == "died":
        correct, status = _run(kind, problem, task)
    return correct, _STATUS.get(status, "ok")


def _run(kind: Kind, problem: Problem, task: Task) -> tuple[bool, str]:
    same = same_value if problem.function else same_output
    with _start(kind, task) as sandbox:
        for case in problem.cases:
            reply = sandbox.ask(case.input, _WALL_TIMES * task.seconds + _WALL_MORE)
            if reply.status != "ok" or not same(case.output, reply.output):
                return False, reply.status
    return True, "ok"


def _start(kind: Kind, task: Task) -> SandboxProcess:
    """Start a sandbox, once more if something outside ended the first."""
    try:
        return SandboxProcess(kind.command(), task)
    except WorkerError:
        return SandboxProcess(kind.command(), task)
