"""The file system of a sandbox without bubblewrap: mounts in a new user and mount namespace.

Runs as the first process of new namespaces, with all capabilities in them (`unshare` of util-linux
makes them so), and has none afterwards.
"""

# pathlib takes long to import.
# ruff: noqa: PTH102, PTH103, PTH106, PTH112, PTH120, PTH123, PTH211

import ctypes
import os

from respo.rewards.code.inside.system import call, drop_privileges

_RDONLY, _NOSUID, _NODEV, _NOEXEC = 1, 2, 4, 8
_REMOUNT, _BIND, _REC = 32, 4096, 16384
_DETACH = 2
_KEEP = 1 | 2 | 4 | 8 | 1024 | 2048 | 4096  # what a mount has of these cannot be taken from it
_OLD = "/old"
_TEMPORARY_FILES = 4096


def enter(
    binds: list[tuple[str, str]],
    devices: list[str],
    links: list[tuple[str, str]],
    temporary_bytes: int,
) -> None:
    """Leave the file system of the host for one that has only this.

    Args:
        binds: folders and files of the host, and where they are to be seen, read-only.
        devices: files of the host, to be used where they are.
        links: symbolic links, ``(target, path)``.
        temporary_bytes: size of `/tmp`, the only place to write to.
    """
    # What /tmp covers comes to light again when it becomes the root.
    _mount("tmpfs", "/tmp", "tmpfs", _NOSUID | _NODEV, "size=1m,mode=755")
    os.mkdir("/tmp" + _OLD)
    call("pivot_root", b"/tmp", b"/tmp" + _OLD.encode())
    os.chdir("/")
    for source, path in (*binds, *zip(devices, devices, strict=True)):
        _bind(source, path)
    for target, path in links:
        os.symlink(target, path)
    os.mkdir("/proc")
    _mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    with open("/proc/sys/user/max_user_namespaces", "w") as file:
        file.write("0")
    for path in (*(path for _, path in binds), "/proc"):
        _make_read_only(path)
    os.mkdir("/tmp")
    options = f"size={temporary_bytes},nr_inodes={_TEMPORARY_FILES},mode=1777"
    _mount("tmpfs", "/tmp", "tmpfs", _NOSUID | _NODEV, options)
    call("umount2", _OLD.encode(), _DETACH)
    os.rmdir(_OLD)
    _mount(None, "/", None, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV)
    drop_privileges()


def _mount(
    source: str | None, target: str, kind: str | None, flags: int, options: str | None = None
) -> None:
    texts = [None if text is None else text.encode() for text in (source, target, kind, options)]
    call("mount", *texts[:3], ctypes.c_ulong(flags), texts[3])


def _bind(source: str, path: str) -> None:
    if os.path.isdir(_OLD + source):
        os.makedirs(path, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    _mount(_OLD + source, path, None, _BIND | _REC)


def _make_read_only(folder: str) -> None:
    """Remount a folder and all that is mounted below it."""
    for path in _mounted(folder):
        flags = _RDONLY | _NOSUID | _NODEV | (os.statvfs(path).f_flag & _KEEP)
        _mount(None, path, None, _REMOUNT | _BIND | flags)


def _mounted(folder: str) -> list[str]:
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        paths = [_unescape(line.split()[4]) for line in file]
    return [path for path in paths if path == folder or path.startswith(folder + "/")]


def _unescape(path: str) -> str:
    for character in " \t\n\\":
        path = path.replace(f"\\{ord(character):03o}", character)
    return path
