"""Which names lead to files of a results folder, which lead out of it, and which are to be read.

A folder may come from anybody: a name in a record never leads out of it, and a pack, which holds no
links when it is made, has none that do. In results of one's own, a run may have been moved to
another disk, with a link in its place.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from respo.cli import UserError

MANIFEST = "MANIFEST.json"


def is_inside(name: str) -> bool:
    """Tell whether a name, below a folder and with `/`, stays below it; links are not looked at."""
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts or "\0" in name:
        return False
    return parts.as_posix() == name != "."


def wrong_file(root: Path, path: Path, follow: bool = False) -> str | None:
    """Tell why what lies under a name is no file of a folder; None if it is one, or not there.

    Pipes and devices would be waited for.

    Args:
        root: the folder, without links.
        path: below it.
        follow: links may lead out of it, to a file.
    """
    if not os.path.lexists(path):
        return None
    if not follow and leads_out(root, path):
        return "leads out of the folder, by a link; put the file itself here"
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "is a link to nothing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None if stat.S_ISREG(mode) else "is no regular file"


def is_other(path: Path) -> bool:
    """Tell whether something else than a file lies there, such as a pipe, which is not read."""
    return path.exists() and not path.is_file()


def is_file(path: Path) -> bool:
    """Tell whether a file is there, before it is read.

    Raises:
        UserError: something else lies there.
    """
    if is_other(path):
        raise UserError(
            f"{path}: is no regular file, and was not read. Remove it, and put the file itself here"
        )
    return path.is_file()


def leads_out(root: Path, path: Path) -> bool:
    """Tell whether a path leads out of a folder, given without links, by a link."""
    return not Path(os.path.realpath(path)).is_relative_to(root)


def links_out(folder: Path) -> Iterator[Path]:
    """Yield the links below a folder that lead out of it, in the order of their names."""
    root = Path(os.path.realpath(folder))
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() and leads_out(root, path):
            yield path
