"""Parquet files, which tell what they were made from and whether they were changed.

Provenance is JSON under the schema metadata key ``respo``. Pages have checksums; the footer and the
provenance have hashes.
"""

import hashlib
import json
from bisect import bisect_right
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from respo.cli import UserError
from respo.files import atomic_path
from respo.footer import check_footer, seal_footer

METADATA_KEY = b"respo"
SEAL_KEY = b"respo_sha256"  # of the provenance: pages have checksums, this text has none
ANEW = "Delete it and start again"
BATCH_ROWS = 64  # held at a time by those who need not hold a whole file


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
