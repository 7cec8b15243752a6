"""Processes of which none may be left: descendants, found and ended whatever they do (Linux).

A process whose parent dies becomes the child of its nearest ancestor that has called `adopt`. So
the descendants of such a process are all that it ever started, daemons and sessions of their own
included.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def adopt() -> None:
    """Become the parent of descendants whose parent dies."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int, number: int) -> None:
    """Have this process sent a signal when its parent dies; at once if it is dead already.

    Args:
        parent: the process id of the parent, asked for before this process was forked.
        number: the signal.
    """
    _prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def descendants(root: int) -> list[int]:
    """Return the process ids of all living descendants, parents before children."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                # The name, in parentheses, may hold anything; state and parent come after it.
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                if state != "Z":
                    children.setdefault(int(parent), []).append(int(entry.name))
    found = list(children.get(root, []))
    for process in found:
        found += children.get(process, [])
    return found


def end_descendants(root: int, grace: float = 0.0) -> int:
    """Ask all descendants to end, kill those left after `grace` seconds, and wait for their end.

    Returns how many had to be killed. For the calling process itself or a child of it.
    """
    if grace:
        _signal(descendants(root), signal.SIGTERM)
        until = time.monotonic() + grace
        while time.monotonic() < until and descendants(root):
            _reap()
            time.sleep(0.05)
    killed: set[int] = set()
    # Processes may still be forking: repeat until there are none. One in a system call that
    # cannot be interrupted (a dead file system) outlives this; the machine must deal with it.
    until = time.monotonic() + 30
    while (left := descendants(root)) and time.monotonic() < until:
        killed.update(left)
        _signal(left, signal.SIGKILL)
        time.sleep(0.05)
        _reap()
    _reap()
    return len(killed)


def _signal(processes: list[int], number: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)


def _reap() -> None:
    """Collect children that have ended, adopted ones among them."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def dump_stacks(processes: list[int], folder: Path) -> list[Path]:
    """Write what Python processes are doing: a file for each in `folder`, made by py-spy.

    Returns the files. Where py-spy is missing or not permitted to look, the process is sent
    SIGABRT, which ends it: with PYTHONFAULTHANDLER=1 in its environment it first writes its stacks
    to its standard error.
    """
    written = []
    for process in processes:
        if not _is_python(process):
            continue
        text = _spy(process)
        if text is None:
            _signal([process], signal.SIGABRT)
            continue
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{process}.txt"
        path.write_text(text)
        written.append(path)
    return written


def _is_python(process: int) -> bool:
    with suppress(OSError):
        return "python" in Path(f"/proc/{process}/exe").readlink().name
    return False


def _spy(process: int) -> str | None:
    command = [str(Path(sys.executable).with_name("py-spy")), "dump", "--pid", str(process)]
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=30
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
