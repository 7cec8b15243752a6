"""What a sandbox sees of the host: an interpreter, its standard library, numpy, what they need."""

import importlib.util
import os
import sys
from pathlib import Path
from typing import NamedTuple

# For no more than the interpreter's folder, in a mount namespace of our own.
SPARE = "/mnt"
PACKAGES = "/packages"  # in the sandbox
UNPRIVILEGED = 65534  # the user and group of programs, if we are root: `nobody`

_SYSTEM = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
_LIBRARIES = "/etc/ld.so.cache"
# Not `zero`: what is mapped of it stays in memory when no process has it in use.
_DEVICES = ("null", "full", "random", "urandom")
_STREAMS = (("0", "stdin"), ("1", "stdout"), ("2", "stderr"))


class Layout(NamedTuple):
    """The file system of a sandbox, apart from `/proc` and a small `/tmp`."""

    python: str  # where it is in the sandbox, and for who starts it
    hidden: str | None  # the interpreter's folder, if it has to be mounted at `SPARE` first
    binds: list[str]  # read-only, where they are on the host
    packages: list[
        tuple[str, str]
    ]  # read-only: where they are on the host, and where in `PACKAGES`
    devices: list[str]
    links: list[tuple[str, str]]  # target, path


def host_python() -> str:
    """Return this interpreter: not of the virtual environment, but what that was made with."""
    return os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)


def system_layout() -> Layout:
    """Return the layout for this interpreter on this system.

    Of a folder that an interpreter has for itself, such as a conda environment, a sandbox sees
    programs and libraries only. If we are root and others cannot enter that folder (it is in
    root's home), it is at `SPARE`.
    """
    binds, links = ["/usr"], []
    for name in _SYSTEM:
        path = Path("/", name)
        if path.is_symlink():
            links.append((str(path.readlink()), str(path)))
        elif path.is_dir():
            binds.append(str(path))
    if Path(_LIBRARIES).exists():
        binds.append(_LIBRARIES)
    prefix = Path(os.path.realpath(sys.base_prefix))
    hidden = os.geteuid() == 0 and not _open_to_all(prefix)
    place = Path(SPARE) if hidden else prefix
    if not place.is_relative_to("/usr"):
        folders = [name for name in ("bin", "lib", "lib64") if (prefix / name).is_dir()]
        binds += [str(place / name) for name in folders]
    streams = [(f"/proc/self/fd/{number}", f"/dev/{name}") for number, name in _STREAMS]
    return Layout(
        str(place / Path(host_python()).relative_to(prefix)),
        str(prefix) if hidden else None,
        binds,
        [(str(folder), f"{PACKAGES}/{folder.name}") for folder in numpy_folders()],
        [f"/dev/{name}" for name in _DEVICES],
        [*links, *streams, ("/proc/self/fd", "/dev/fd")],
    )


def numpy_folders() -> list[Path]:
    """Return the folders of this environment's numpy and of its libraries.

    There are none if it has no numpy, if its files are links to elsewhere, or if we are root and
    others cannot enter its folder.
    """
    found = importlib.util.find_spec("numpy")
    if found is None or found.origin is None:
        return []
    package = Path(found.origin).parent.resolve()
    if (package / "__init__.py").is_symlink():
        return []
    if os.geteuid() == 0 and not _open_to_all(package):
        return []
    return [folder for folder in (package, package.with_name("numpy.libs")) if folder.is_dir()]


def _open_to_all(folder: Path) -> bool:
    return all(path.stat().st_mode & 0o001 for path in (folder, *folder.parents))
