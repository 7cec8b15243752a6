"""Calls of the C library that Python does not offer."""

# pathlib takes long to import.
# ruff: noqa: PTH123

import ctypes
import os
import signal
from typing import Any

_library = ctypes.CDLL(None, use_errno=True)

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 1, 4, 24, 38
_CAPABILITY_VERSION = 0x20080522


def call(name: str, *arguments: Any) -> None:
    """Call a function of the C library that returns 0 if it succeeds.

    Raises:
        OSError: it does not.
    """
    if getattr(_library, name)(*arguments) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")


def prctl(option: int, argument: int, pointer: Any = None) -> None:
    """Set an attribute of this process."""
    call("prctl", option, ctypes.c_ulong(argument), pointer, None, None)


def die_with_parent() -> None:
    """Be killed when the process that forked this one ends."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def set_dumpable(dumpable: bool) -> None:
    """Let other processes of the same user look into this one, or not."""
    prctl(_PR_SET_DUMPABLE, int(dumpable))


def forbid_privileges() -> None:
    """Never have more privileges than now, whatever is executed."""
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_privileges() -> None:
    """Give up all capabilities for good."""
    forbid_privileges()
    with open("/proc/sys/kernel/cap_last_cap") as file:
        last = int(file.read())
    for capability in range(last + 1):
        prctl(_PR_CAPBSET_DROP, capability)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    call("capset", header, (ctypes.c_uint32 * 6)())
