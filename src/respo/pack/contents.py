"""Which files of a results folder go into a pack, and what must not be in them."""

import base64
import gzip
import json
import re
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path

from respo.check import expected
from respo.check.folder import Folder
from respo.cli import UserError
from respo.config.yaml import read_yaml
from respo.files import SEAL, seal

# Where files of the machine are named by their whole path, in YAML and JSON.
ABSOLUTE = re.compile(r"(?<![\w.:/~])(?:/[\w.+@-]+){2,}|~/[\w./+@-]+|[A-Za-z]:\\\\[\w\\.+@-]+")
# What the page shows, compressed.
PAGE = re.compile(rb'<script type="text/plain" id="data">([A-Za-z0-9+/=]+)</script>')
SEARCHED = (".yaml", ".json", ".md", ".csv", ".tex", ".html", ".parquet", ".pdf", ".png")


def chosen(folder: Folder, left_out: Iterable[str]) -> Iterator[tuple[str, Path]]:
    """Yield name and path of what goes into a pack, in order of the names.

    Args:
        folder: that is checked.
        left_out: kinds of files that do not.
    """
    names = [
        name
        for name, _, _ in expected.files(folder.study, folder.papers)
        if not expected.is_left_out(name, left_out)
    ]
    files = {name: folder.path / name for name in names if (folder.path / name).is_file()}
    for paper in sorted({table.partition("/")[0] for table in folder.study.study.tables}):
        numbers = folder.papers / f"{paper}.csv"
        if numbers.is_file():
            files[f"reference/{paper}.csv"] = numbers
    yield from sorted(files.items())


def content(name: str, path: Path) -> bytes | None:
    """Return what stands for a file in a pack; None where it is the file itself.

    The record of initial weights names a folder of this machine, by which nobody else finds them.
    """
    if not re.fullmatch(r"initial/[^/]+/initial\.json", name):
        return None
    record = json.loads(path.read_bytes())
    if "weights" not in record:
        return None
    del record["weights"]
    if SEAL in record:
        record[SEAL] = seal(record)
    return (json.dumps(record, indent=2) + "\n").encode()


def check_private(name: str, path: Path) -> None:
    """Refuse a file that tells of folders, users or hosts of this machine.

    Raises:
        UserError: it does; the text names what.
    """
    if path.suffix not in SEARCHED:
        return
    data = content(name, path) or path.read_bytes()
    if page := PAGE.search(data):
        data += gzip.decompress(base64.b64decode(page[1]))
    for words in _own_words(path):
        if words.encode() in data:
            raise UserError(_refusal(path, words))
    if path.suffix == ".yaml":
        read_yaml(path)
        if found := ABSOLUTE.search(data.decode()):
            raise UserError(_refusal(path, found.group()))


def _own_words(path: Path) -> set[str]:
    """Return what only this machine and user have: the home, this folder, the host."""
    folders = {Path.home(), Path.cwd(), path.resolve().parent}
    words = {str(folder) for folder in folders if len(folder.parts) > 2}
    host = socket.gethostname()
    return words | ({host} if len(host) > 7 else set())


def _refusal(path: Path, words: str) -> str:
    return (
        f"{path}: holds {words!r}, which tells of this machine. Name models and data by the hub or "
        "by relative paths, or pack with --with-paths if others may read it"
    )
