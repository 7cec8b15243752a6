"""Reading and writing: nothing half-written is ever taken for a good file.

Every file is written to a temporary sibling, flushed to disk and renamed. What a disk or a copy has
changed later is recognised: records have a hash of themselves.
"""

import fcntl
import functools
import glob
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from respo.cli import UserError

SEAL = "self_sha256"  # of a record, the hash of all else that it says


@contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """Give a temporary sibling of ``path`` to write to; rename it to ``path`` if all went well.

    Raises:
        OSError: it cannot be written; ``filename`` is the file that the user knows.
    """
    with _named(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        temporary = Path(name)
        try:
            yield temporary
            with temporary.open("rb+") as written:
                os.fsync(written.fileno())
            # mkstemp creates private files; results are as readable as the umask allows.
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            os.close(handle)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Name a file in errors: not a temporary one, and a write to a full disk names none at all."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def _sweep(path: Path) -> None:
    """Remove what killed writers of a file have left beside it: nobody holds its lock any more."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.part"):
        with suppress(OSError), left.open("rb+") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # One that was just made may not be locked yet.
            if time.time() - left.stat().st_mtime > 1:
                left.unlink()


def check_writable(folder: Path) -> None:
    """Raise an OSError, naming the folder, if files cannot be written there; make it if need be."""
    with _named(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass


@functools.cache
def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON atomically; NaN is refused, since JSON has none."""
    write_text(path, json.dumps(value, indent=2, allow_nan=False) + "\n")


def write_record(path: Path, record: dict[str, Any]) -> None:
    """Write a JSON object atomically, with a hash of itself that `read_json` checks."""
    record = json.loads(json.dumps(record, allow_nan=False))  # as it will be read: keys are text
    write_json(path, record | {SEAL: seal(record)})


def seal(record: dict[str, Any]) -> str:
    """Return the SHA-256 of a record without its own hash, whatever its layout and order."""
    rest = {key: value for key, value in record.items() if key != SEAL}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read_json(path: Path) -> Any:
    """Read JSON, and check a record's hash of itself.

    Raises:
        UserError: the file is missing, not JSON, nested endlessly, or a record that was changed
            after it was written; the text names it and the remedy.
    """
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not valid JSON ({error}). Delete it and make it anew.") from None
    if isinstance(value, dict) and SEAL in value and value[SEAL] != seal(value):
        raise UserError(
            f"{path}: was changed or damaged after it was written: {SEAL} is not the hash of the "
            "rest. Delete it and make it anew."
        )
    return value


def sha256_of(path: Path) -> str:
    """Hash a file's bytes.

    Raises:
        UserError: there is no such file.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
