"""Reading and writing: nothing half-written is ever taken for a good file.

Every file is written to a temporary sibling, flushed to disk and renamed. Parquet files carry what
they were made from as JSON under the schema metadata key ``respo``. What a disk or a copy has
changed later is recognised: Parquet pages have checksums, their footer, provenance and records a
hash.
"""

import fcntl
import functools
import glob
import hashlib
import importlib.metadata
import json
import os
import platform
import subprocess
import tempfile
import time
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from respo.cli import UserError
from respo.footer import check_footer, seal_footer

METADATA_KEY = b"respo"
SEAL_KEY = b"respo_sha256"  # of the provenance: pages have checksums, this text has none
SEAL = "self_sha256"  # of a record, the hash of all else that it says
ANEW = "Delete it and start again"
BATCH_ROWS = 64  # held at a time by those who need not hold a whole file


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


def write_parquet(path: Path, table: pa.Table, made_from: dict[str, Any]) -> None:
    """Write a table atomically, with ``made_from`` as its provenance, and checksums."""
    table = table.replace_schema_metadata(_sealed(made_from))
    with _parquet_path(path) as temporary:
        pq.write_table(table, temporary, write_page_checksum=True)


@contextmanager
def _parquet_path(path: Path) -> Iterator[Path]:
    """As `atomic_path`; the footer of what is written there gets its hash."""
    with atomic_path(path) as temporary:
        yield temporary
        seal_footer(temporary)


@contextmanager
def parquet_writer(
    path: Path, schema: pa.Schema, made_from: dict[str, Any]
) -> Iterator[Callable[[pa.Table], None]]:
    """Give a function that appends a table, at least one row group, to what will be ``path``.

    The file appears under its name when all went well, as with `write_parquet`.
    """
    schema = schema.with_metadata(_sealed(made_from))
    with (
        _parquet_path(path) as temporary,
        pq.ParquetWriter(temporary, schema, write_page_checksum=True) as writer,
    ):
        yield lambda table: writer.write_table(table.cast(schema))


def write_parquet_rows(
    path: Path,
    schema: pa.Schema,
    rows: Iterable[dict[str, Any]],
    made_from: Callable[[], dict[str, Any]],
) -> int:
    """Write rows atomically, as `write_parquet`, each as a row group of its own.

    So no more than one is held in memory, here and by those that read row groups.

    Args:
        path: the file.
        schema: of the rows.
        rows: may raise, and then nothing is written.
        made_from: called when the rows have come to their end.

    Returns:
        The number of rows.
    """
    count = 0
    options = {"compression": "zstd", "write_page_checksum": True, "write_statistics": False}
    with (
        _parquet_path(path) as temporary,
        pq.ParquetWriter(temporary, schema, **options) as writer,
    ):
        for row in rows:
            writer.write_table(pa.Table.from_pylist([row], schema=schema))
            count += 1
        writer.add_key_value_metadata(_sealed(made_from()))
    return count


def _sealed(made_from: dict[str, Any]) -> dict[bytes, bytes]:
    text = json.dumps(made_from, sort_keys=True).encode()
    return {METADATA_KEY: text, SEAL_KEY: hashlib.sha256(text).hexdigest().encode()}


def read_parquet(path: Path, columns: Sequence[str] | None = None, remedy: str = ANEW) -> pa.Table:
    """Read a table, ``columns`` of it when given.

    Args:
        path: the file.
        columns: those to read; default all.
        remedy: what to do where it is damaged or no Parquet file.

    Raises:
        UserError: the file is missing, damaged, lacks a column or has a broken provenance; the text
            says which.
    """
    with _open_parquet(path, remedy) as file:
        _check_columns(path, file, columns or ())
        table = file.read(columns=columns)
        table.validate(full=True)
        _check_count(table.num_rows, file.metadata.num_rows)
        # The file holds the metadata twice: what was checked at opening may be the other copy.
        _provenance(table.schema.metadata)
    return table


def parquet_batches(path: Path, columns: Container[str]) -> Iterator[pa.RecordBatch]:
    """Read those of the ``columns`` that are there, some rows at a time.

    Raises:
        UserError: as `read_parquet`, but damage is noticed only where it stands.
    """
    with _open_parquet(path) as file:
        names = [name for name in file.schema_arrow.names if name in columns]
        count = 0
        for batch in file.iter_batches(BATCH_ROWS, columns=names, use_threads=False):
            _provenance(batch.schema.metadata)  # the other copy, as in `read_parquet`
            batch.validate(full=True)
            count += batch.num_rows
            yield batch
        _check_count(count, file.metadata.num_rows)


def parquet_take(path: Path, columns: Sequence[str], rows: Sequence[int]) -> list[dict[str, Any]]:
    """Read some rows, of the file only the row groups that hold them.

    Args:
        path: the file.
        columns: those to read.
        rows: numbers of rows from 0, in any order.

    Raises:
        UserError: as `read_parquet`, or there is no such row.
    """
    with _open_parquet(path) as file:
        _check_columns(path, file, columns)
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        starts = list(accumulate(sizes, initial=0))
        beyond = [row for row in rows if not 0 <= row < starts[-1]]
        if beyond:
            raise UserError(f"{path}: has {starts[-1]} rows, and no row {beyond[0] + 1}")
        place = {row: bisect_right(starts, row) - 1 for row in rows}
        found: dict[int, dict[str, Any]] = {}
        for group in sorted(set(place.values())):
            table = file.read_row_group(group, columns=list(columns))
            _check_count(table.num_rows, sizes[group])
            for row in (row for row in place if place[row] == group):
                found[row] = table.slice(row - starts[group], 1).to_pylist()[0]
    return [found[row] for row in rows]


def _check_columns(path: Path, file: pq.ParquetFile, columns: Iterable[str]) -> None:
    names = file.schema_arrow.names
    for name in columns:
        if name not in names:
            raise UserError(f"{path}: column {name!r} is missing; there are {', '.join(names)}")


def parquet_made_from(path: Path) -> dict[str, Any]:
    """Return the provenance of a file, which may be empty; errors as in `read_parquet`."""
    with _open_parquet(path) as file:
        return _provenance(file.metadata.metadata)


def parquet_columns(path: Path) -> list[str]:
    """Return the names of the columns; errors as in `read_parquet`."""
    with _open_parquet(path) as file:
        names: list[str] = file.schema_arrow.names
        return names


def parquet_rows(path: Path) -> int:
    """Return the number of rows; errors as in `read_parquet`."""
    with _open_parquet(path) as file:
        rows: int = file.metadata.num_rows
        return rows


@contextmanager
def _open_parquet(path: Path, remedy: str = ANEW) -> Iterator[pq.ParquetFile]:
    try:
        check_footer(path)
        # A buffer: or a whole column of a row group would be in memory.
        with pq.ParquetFile(
            path, page_checksum_verification=True, buffer_size=1 << 20, pre_buffer=False
        ) as file:
            _provenance(file.metadata.metadata)
            _check_rows(file.metadata)
            yield file
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{path}: not a readable Parquet file ({reason}). {remedy}.") from None
    except ValueError as error:
        raise UserError(f"{path}: {error}. {remedy}.") from None


def made_from(table: pa.Table) -> dict[str, Any]:
    """Return the provenance that `write_parquet` stored with a table, or an empty dictionary.

    Raises:
        ValueError: it is broken, which cannot be in a table of `read_parquet`.
    """
    return _provenance(table.schema.metadata)


def _provenance(metadata: dict[bytes, bytes] | None) -> dict[str, Any]:
    metadata = metadata or {}
    text = metadata.get(METADATA_KEY, b"{}")
    try:
        provenance = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"metadata 'respo' is not JSON ({error})") from None
    if not isinstance(provenance, dict):
        raise ValueError("metadata 'respo' is not a JSON object")
    found = hashlib.sha256(text).hexdigest().encode()
    if metadata.get(SEAL_KEY, found) != found:
        raise ValueError("metadata 'respo' was changed or damaged after the file was written")
    return provenance


def _check_rows(metadata: pq.FileMetaData) -> None:
    """Refuse numbers of rows that contradict each other: not every footer has its hash."""
    groups = sum(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
    if groups != metadata.num_rows:
        raise ValueError(f"its footer counts {metadata.num_rows} rows, its row groups {groups}")


def _check_count(found: int, written: int) -> None:
    """Refuse a file that is short of rows: heads of pages, too, have no checksum."""
    if found != written:
        raise ValueError(f"is damaged: of its {written} rows, {found} can be read")


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


# What makes results; a file beside it, such as a method of the user's own, is none of it.
CODE = (":/src", ":/workflow", ":/Snakefile")


NO_CHECKOUT = "not from a git checkout"


@functools.cache
def code_revision() -> str:
    """Git revision of the checkout, with ``-dirty`` where its code differs.

    ``not from a git checkout`` for an installed package, also within the checkout of something
    else; ``unknown`` where git is missing or refuses to tell.
    """

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    if not any((folder / ".git").exists() for folder in Path(__file__).parents):
        return NO_CHECKOUT
    try:
        if not git("ls-files", "--", Path(__file__).name):
            return NO_CHECKOUT
        return git("rev-parse", "HEAD") + (
            "-dirty" if git("status", "--porcelain", "--", *CODE) else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


@functools.cache
def processor() -> str:
    """Model of the processor, as the system names it, and the number of its threads."""
    model = platform.processor() or platform.machine()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        model = next(
            (x.partition(":")[2].strip() for x in lines if x.startswith("model name")), model
        )
    return f"{model}, {os.cpu_count()} threads"


def environment(*packages: str) -> dict[str, str]:
    """Return what made a result: code revision, Python, machine, and versions of the packages.

    The machine is told by its kind: names of hosts and users are nobody else's business.
    """
    return {
        "respo": importlib.metadata.version("respo"),
        "code": code_revision(),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        **{name: importlib.metadata.version(name) for name in packages},
    }
