"""The first process of a sandbox: forks one process per test and sends back what that wrote.

Reads JSON lines from standard input: first the program (see `Task`), then the input of one test at
a time. Answers ``ready``, then each test with a line ``STATUS BYTES`` and as many bytes of output.
It knows no expected output: whatever a program does to it, all that can come out is an answer.
"""

# pathlib takes long to import.
# ruff: noqa: PTH123, PTH208

import gc
import json
import os
import resource
import select
import signal
import sys
import time
from typing import Any, NamedTuple

from respo.rewards.code.inside.limits import limit
from respo.rewards.code.inside.programs import names, run_function, run_program
from respo.rewards.code.inside.seccomp import refuse_calls
from respo.rewards.code.inside.system import set_dumpable

_LOOK_SECONDS = 0.02  # how often the memory of all processes is added up
_MEMORY_ERROR = 99  # exit code
_PAGE = resource.getpagesize()
# Only there it is the first process, whose end ends all others.
_SANDBOXED = os.getpid() == 1


class Task(NamedTuple):
    """A program and its limits; sizes in bytes."""

    program: str
    function: str | None
    memory: int  # address space of a process, and the sum of what all have in use
    file: int
    output: int
    seconds: float  # processor time
    processes: int


def main() -> None:
    """Serve until standard input ends."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.dup(1)
    silence = os.open(os.devnull, os.O_RDWR)
    os.dup2(silence, 0)
    os.dup2(silence, 1)
    if "" in sys.path:
        sys.path.remove("")
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # without a handler, the first process is immune
    found = names()
    set_dumpable(False)  # its memory and its pipes are out of a program's reach
    gc.freeze()
    send(replies, b"ready\n")
    os.dup2(silence, 2)

    task = Task(**json.loads(requests.readline()))
    for line in requests:
        status, output = run_test(task, found, json.loads(line), requests.fileno())
        send(replies, f"{status} {len(output)}\n".encode() + output)


def send(replies: int, data: bytes) -> None:
    """Write all of it."""
    while data:
        data = data[os.write(replies, data) :]


def run_test(task: Task, found: dict[str, Any], text: str, requests: int) -> tuple[str, bytes]:
    """Run the program on one input; return its status and output.

    The status is ``ok``, ``error``, ``memory`` or ``output``, of which there was too much.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = _run(task, found, text, writer)
        finally:
            os._exit(code)
    os.close(writer)
    try:
        return _watch(child, reader, requests, task)
    finally:
        _end_all(child)
        os.close(reader)


def _run(task: Task, found: dict[str, Any], text: str, writer: int) -> int:
    os.setpgid(0, 0)
    source = os.memfd_create("input")
    with open(source, "w", encoding="utf-8", errors="surrogatepass", closefd=False) as file:
        file.write("" if task.function else text)
    os.lseek(source, 0, os.SEEK_SET)
    os.dup2(source, 0)
    os.dup2(writer, 1)
    os.closerange(3, 1024)
    if _SANDBOXED:
        os.chdir("/tmp")
    limit(task.memory, task.file, task.seconds, task.processes if _SANDBOXED else None)
    refuse_calls()
    set_dumpable(True)  # or it could not open /dev/stdin
    try:
        if task.function:
            run_function(task.program, found, task.function, text)
        else:
            run_program(task.program, found)
    except MemoryError:
        return _MEMORY_ERROR
    except BaseException:
        return 1
    return 0


def _watch(child: int, reader: int, requests: int, task: Task) -> tuple[str, bytes]:
    output, open_end, code = bytearray(), True, None
    look = time.monotonic() + _LOOK_SECONDS
    while code is None:
        ready = select.select(
            [requests, reader] if open_end else [requests],
            [],
            [],
            _LOOK_SECONDS if open_end else 0.001,  # its end is near
        )[0]
        if requests in ready:  # nobody is there any more
            os._exit(0)
        if reader in ready:
            chunk = os.read(reader, 1 << 16)
            output += chunk
            open_end = bool(chunk)
        if len(output) > task.output:
            return "output", b""
        code = _reap(child)
        if time.monotonic() >= look:
            if _SANDBOXED and _memory() > task.memory:
                return "memory", b""
            look = time.monotonic() + _LOOK_SECONDS
    _end_all(child)
    if open_end:
        os.set_blocking(reader, False)
        output += _rest(reader, task.output + 1)
    if len(output) > task.output:
        return "output", b""
    if code == _MEMORY_ERROR:
        return "memory", b""
    return ("ok" if code == 0 else "error"), bytes(output)


def _reap(child: int) -> int | None:
    """Take all ended processes away; return the exit code of ``child`` if it is among them."""
    code = None
    try:
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            if ended[0] == child:
                code = os.waitstatus_to_exitcode(ended[1])
    except ChildProcessError:
        pass
    return code


def _end_all(child: int) -> None:
    """End all other processes of the sandbox; outside of one, those of the child's group."""
    try:
        if _SANDBOXED:
            os.kill(-1, signal.SIGKILL)
        else:
            os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        while True:
            os.waitpid(-1, 0)
    except ChildProcessError:
        pass


def _rest(reader: int, most: int) -> bytes:
    output = b""
    try:
        while len(output) < most and (chunk := os.read(reader, 1 << 16)):
            output += chunk
    except BlockingIOError:
        pass
    return output


def _memory() -> int:
    """Return the bytes that all other processes have in use; shared ones count for each."""
    pages = 0
    for name in os.listdir("/proc"):
        if name.isdigit() and name != "1":
            try:
                with open(f"/proc/{name}/statm") as file:
                    pages += int(file.read().split()[1])
            except (OSError, IndexError):  # it has just ended
                pass
    return pages * _PAGE
