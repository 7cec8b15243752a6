"""The first process of a sandbox: forks one process per test and sends back what that wrote.

Reads JSON lines from standard input: first the program (see `Task`), then the input of one test at
a time. Answers ``ready``, then each test with a line ``STATUS BYTES`` and as many bytes of output.
It knows no expected output: whatever a program does to it, all that can come out is an answer.
"""

# pathlib takes long to import.
# ruff: noqa: PTH106, PTH108, PTH123, PTH208

import gc
import json
import os
import resource
import select
import signal
import sys
import time
from contextlib import suppress
from typing import Any, NamedTuple, NoReturn

from respo.rewards.code.inside.limits import limit
from respo.rewards.code.inside.programs import names, run_function, run_program
from respo.rewards.code.inside.seccomp import refuse_calls
from respo.rewards.code.inside.system import die_with_parent, set_dumpable

_LOOK_SECONDS = 0.02  # how often the use of all processes is added up
_MEMORY_ERROR = 99  # exit code
_PAGE, _TICKS = resource.getpagesize(), os.sysconf("SC_CLK_TCK")
_TEMPORARY = "/tmp"
_TEMPORARY_FILES = 4096  # each takes memory of the kernel, whatever its size
# Only there it is the first process, whose end ends all others.
_SANDBOXED = os.getpid() == 1


class Task(NamedTuple):
    """A program and its limits; sizes in bytes."""

    program: str
    function: str | None
    memory: int  # address space of a process, and the sum of what all have in use
    file: int
    output: int
    seconds: float  # processor time of a test
    processes: int


def main() -> None:
    """Serve until standard input ends."""
    # Programs have the number of its descriptor for themselves; it must not be closed with it.
    requests, replies = os.fdopen(os.dup(0), "rb", closefd=False), os.dup(1)
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

    The status is ``ok``, ``error``, ``timeout``, or ``memory`` or ``output``, of which there was
    too much. What a test left in `/tmp` is gone; if it cannot be removed, the sandbox ends.
    """
    if _SANDBOXED:
        _clear(_TEMPORARY)
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    child = os.fork()
    if child == 0:
        _run(task, found, text, writer)
    os.close(writer)
    try:
        return _watch(child, reader, requests, task)
    finally:
        _end_all(child)
        os.close(reader)


def _run(task: Task, found: dict[str, Any], text: str, writer: int) -> NoReturn:
    """Run the program and end this process: after a script, as the interpreter ends after one."""
    try:
        _confine(task, text, writer)
        if task.function:
            run_function(task.program, found, task.function, text)
            os._exit(0)
        run_program(task.program, found)
    except MemoryError:
        os._exit(_MEMORY_ERROR)
    except BaseException:
        os._exit(1)
    raise SystemExit


def _confine(task: Task, text: str, writer: int) -> None:
    os.setpgid(0, 0)
    die_with_parent()  # that is the sandbox's end anyway, where there is one
    source = os.memfd_create("input")
    with open(source, "w", encoding="utf-8", errors="surrogatepass", closefd=False) as file:
        file.write("" if task.function else text)
    os.lseek(source, 0, os.SEEK_SET)
    os.dup2(source, 0)
    os.dup2(writer, 1)
    os.closerange(3, 1024)
    if _SANDBOXED:
        os.chdir(_TEMPORARY)
    limit(task.memory, task.file, task.seconds, task.processes if _SANDBOXED else None)
    refuse_calls()
    set_dumpable(True)  # or it could not open /dev/stdin


def _watch(child: int, reader: int, requests: int, task: Task) -> tuple[str, bytes]:
    output, open_end, code = bytearray(), True, None
    before = _ended_seconds()
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
            with suppress(BlockingIOError):  # a program can read its own output away
                chunk = os.read(reader, 1 << 16)
                output += chunk
                open_end = bool(chunk)
        if len(output) > task.output:
            return "output", b""
        code = _reap(child)
        if time.monotonic() >= look:
            if _SANDBOXED and (excess := _excess(task, before)):
                return excess, b""
            look = time.monotonic() + _LOOK_SECONDS
    _end_all(child)
    if _ended_seconds() - before > task.seconds:
        return "timeout", b""
    if open_end:
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


def _excess(task: Task, before: float) -> str | None:
    """Return of what all other processes together have more than they may, if of anything.

    Shared memory counts for each. Programs name their processes, with any bytes.
    """
    pages, seconds = 0, _ended_seconds() - before
    for name in os.listdir("/proc"):
        if name.isdigit() and name != "1":
            try:
                pages += _pages(f"/proc/{name}") or _pages_of_threads(name)
                with open(f"/proc/{name}/stat", "rb") as file:
                    times = file.read().rpartition(b")")[2].split()[11:15]
                seconds += sum(map(int, times)) / _TICKS
            except (OSError, IndexError, ValueError):  # it has just ended
                pass
    if seconds > task.seconds:
        return "timeout"
    temporary = os.statvfs(_TEMPORARY)
    files = temporary.f_files - temporary.f_ffree
    return "memory" if pages * _PAGE > task.memory or files > _TEMPORARY_FILES else None


def _pages(folder: str) -> int:
    """Return what a process or thread has in use; nothing of one that has ended."""
    with open(f"{folder}/statm", "rb") as file:
        return int(file.read().split()[1])


def _pages_of_threads(process: str) -> int:
    """Return what a process has in use whose first thread has ended, though others may go on."""
    folder = f"/proc/{process}/task"
    return max(_pages(f"{folder}/{thread}") for thread in os.listdir(folder))


def _ended_seconds() -> float:
    """Return the processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _clear(folder: str) -> None:
    for entry in list(os.scandir(folder)):
        if entry.is_dir(follow_symlinks=False):
            _clear(entry.path)
            os.rmdir(entry.path)
        else:
            os.unlink(entry.path)
