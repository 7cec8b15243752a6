"""One sandbox: started for one program, killed after it."""

import json
import subprocess
import threading
from contextlib import suppress
from types import TracebackType
from typing import NamedTuple

from respo.rewards.code.inside.runner import Task
from respo.rewards.workers import WorkerError

START_SECONDS = 60.0
_HEADER_BYTES = 64

_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/tmp",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",  # a verdict can be had again
    "OMP_NUM_THREADS": "1",  # of numpy's libraries; more would count as processes
}


class Reply(NamedTuple):
    """What became of one test: ``ok``, ``error``, ``memory``, ``output``, ``timeout`` or ``died``.

    There is an output with the first two. All of it comes from a program that may mean harm.
    """

    status: str
    output: str


class SandboxProcess:
    """A sandbox at work on one program; a context manager that leaves no process behind.

    To be used by the thread that made it: bubblewrap dies with that.

    Args:
        command: starts the runner.
        task: the program and its limits.

    Raises:
        WorkerError: it does not start; the text says why.
    """

    def __init__(self, command: list[str], task: Task) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_ENVIRONMENT,
            cwd="/",
            start_new_session=True,  # Ctrl-C is the parent's to handle
        )
        self._overdue = False
        self._output_bytes = task.output
        if self._exchange(b"", START_SECONDS) != b"ready\n":
            raise WorkerError(self._why())
        self._pending = json.dumps(task._asdict()).encode() + b"\n"

    def ask(self, text: str, seconds: float) -> Reply:
        """Run the program on an input; after any other reply than ``ok``, do not ask again.

        Args:
            text: the input.
            seconds: wall-clock limit.
        """
        request = self._pending + json.dumps(text).encode() + b"\n"
        self._pending = b""
        reply = self._exchange(request, seconds)
        header, newline, output = reply.partition(b"\n")
        if not newline:
            return Reply("timeout" if self._overdue else "died", "")
        return Reply(header.split()[0].decode(errors="replace"), output.decode(errors="replace"))

    def close(self) -> None:
        """Kill all that is in the sandbox."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):  # an unsent rest
                pipe.close()

    def __enter__(self) -> "SandboxProcess":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _exchange(self, request: bytes, seconds: float) -> bytes:
        """Send a request; return the reply with its header, or nothing if it is no whole one."""
        timer = threading.Timer(seconds, self._expire)
        timer.daemon = True
        timer.start()
        try:
            return self._talk(request)
        except (BrokenPipeError, ValueError, IndexError):
            return b""
        finally:
            timer.cancel()

    def _talk(self, request: bytes) -> bytes:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(request)
        self._process.stdin.flush()
        header = self._process.stdout.readline(_HEADER_BYTES)
        if not request:
            return header
        size = int(header.split()[1])
        if not 0 <= size <= self._output_bytes:
            return b""
        output = self._process.stdout.read(size)
        return header + output if len(output) == size else b""

    def _expire(self) -> None:
        self._overdue = True
        self._process.kill()

    def _why(self) -> str:
        overdue = self._overdue
        self._process.kill()
        assert self._process.stderr is not None
        text = self._process.stderr.read().decode(errors="replace").strip()
        self.close()
        if overdue:
            return f"it did not start within {START_SECONDS:.0f} s"
        return text.splitlines()[-1] if text else f"exit code {self._process.returncode}"
