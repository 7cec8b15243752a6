"""The kinds of sandbox, as commands that start the runner in one.

Both give a program its own user, mount, process, network, IPC and host name namespaces, the file
system of `respo.rewards.code.layout`, and no capability.
"""

import os
import shutil
from collections.abc import Callable
from typing import NamedTuple

from respo.rewards.code.layout import (
    PACKAGES,
    SPARE,
    UNPRIVILEGED,
    Layout,
    host_python,
    numpy_folders,
    system_layout,
)
from respo.rewards.code.start import python_command

TEMPORARY_BYTES = 64 << 20  # the size of /tmp, and of the largest file


class Kind(NamedTuple):
    """A kind of sandbox."""

    name: str
    command: Callable[[], list[str]]  # raises FileNotFoundError: a program is not installed


def _bubblewrap() -> list[str]:
    layout = system_layout()
    command = [
        *_drop(layout),
        _find("bwrap"),
        *("--unshare-all", "--unshare-user", "--disable-userns"),
        *("--uid", str(UNPRIVILEGED), "--gid", str(UNPRIVILEGED), "--cap-drop", "ALL"),
        *("--die-with-parent", "--new-session", "--as-pid-1", "--hostname", "sandbox"),
        *("--proc", "/proc", "--remount-ro", "/proc"),
        *("--size", str(TEMPORARY_BYTES), "--tmpfs", "/tmp"),
    ]
    for path in layout.binds:
        command += ["--ro-bind", path, path]
    for source, path in layout.packages:
        command += ["--ro-bind", source, path]
    for device in layout.devices:
        command += ["--dev-bind", device, device]
    for target, path in layout.links:
        command += ["--symlink", target, path]
    return [*command, "--remount-ro", "/", "--", *python_command(layout.python, PACKAGES)]


def _namespaces() -> list[str]:
    layout = system_layout()
    mounts = {
        "binds": [*((path, path) for path in layout.binds), *layout.packages],
        "devices": layout.devices,
        "links": layout.links,
        "temporary_bytes": TEMPORARY_BYTES,
    }
    return [
        *_drop(layout),
        _find("unshare"),
        *("--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child"),
        *("--net", "--ipc", "--uts", "--cgroup", "--"),
        *python_command(layout.python, PACKAGES, mounts),
    ]


def _nothing() -> list[str]:
    return python_command(host_python(), next((str(f.parent) for f in numpy_folders()), None))


def _drop(layout: Layout) -> list[str]:
    """Root gives up being root first: the kernel limits no processes of root, in any namespace."""
    if os.geteuid() != 0:
        return []
    ids = [f"--reuid={UNPRIVILEGED}", f"--regid={UNPRIVILEGED}", "--clear-groups", "--"]
    drop = [_find("setpriv"), *ids]
    if layout.hidden is None:
        return drop
    show = 'mount --bind "$0" "$1" && shift && exec "$@"'
    return [_find("unshare"), "--mount", "--", "/bin/sh", "-c", show, layout.hidden, SPARE, *drop]


def _find(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise FileNotFoundError(f"{program} is not installed")
    return found


BUBBLEWRAP = Kind("bubblewrap", _bubblewrap)
NAMESPACES = Kind("namespaces", _namespaces)
UNSANDBOXED = Kind("unsandboxed", _nothing)
