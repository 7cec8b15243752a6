"""The records of a file: Parquet, JSON lines, a JSON list or CSV, each with its place."""

import csv
import json
from collections.abc import Iterable, Iterator
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa
import pyarrow.parquet as pq

from respo.cli import UserError
from respo.footer import check_footer

# Rows of a Parquet file that are held in memory at once.
BATCH_ROWS = 4096
# The longest field of a CSV file, in characters; Python's own limit is 131,072.
FIELD_CHARACTERS = 1 << 30
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Record(NamedTuple):
    """A record and its place: `FILE:LINE`, or `FILE: row N`, both from 1."""

    place: str
    values: dict[str, Any]


def records(
    path: Path,
    columns: Iterable[str],
    optional: Iterable[str] = (),
    batch_rows: int = BATCH_ROWS,
) -> Iterator[Record]:
    """Yield the records of a file in order.

    Args:
        path: the file.
        columns: of a Parquet file these only, and a CSV file must have them.
        optional: columns of a Parquet file beside them, if it has them.
        batch_rows: rows of a Parquet file that are held in memory at once.

    Raises:
        UserError: the file cannot be read, or a record of it; the text names file, line or row.
    """
    match path.suffix:
        case ".parquet":
            return _parquet(path, sorted(set(columns)), set(optional), batch_rows)
        case ".jsonl" | ".json":
            return _json(path)
        case ".csv":
            return _csv(path, sorted(set(columns)))
    raise UserError(f"{path}: name a file that ends in .parquet, .jsonl, .json or .csv")


def _parquet(
    path: Path, columns: list[str], optional: set[str], batch_rows: int
) -> Iterator[Record]:
    try:
        check_footer(path)  # one of our own
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            names = file.schema_arrow.names
            wanted = columns + [name for name in names if name in optional]
            for missing in (column for column in columns if column not in names):
                raise UserError(
                    f"{path}: column {missing!r} is missing; there are {', '.join(names)}; change "
                    f"fields"
                )
            number = 0
            for batch in file.iter_batches(batch_rows, columns=wanted):
                for values in batch.to_pylist():
                    number += 1
                    yield Record(f"{path}: row {number}", values)
            if number != file.metadata.num_rows:
                raise ValueError(f"{number} rows are there, {file.metadata.num_rows} were written")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (pa.ArrowException, OSError, ValueError) as error:  # OSError: damaged pages
        reason = " ".join(str(error).split())
        raise UserError(f"{path}: not a readable Parquet file ({reason}); get it anew") from None


def _json(path: Path) -> Iterator[Record]:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    with file:
        start = file.read(1024)
        _refuse_mark(start, path)
        file.seek(0)
        if start.lstrip().startswith(b"["):
            items = _parsed(file.read(), path, 1)
            for number, item in enumerate(items, start=1):
                yield _object(item, f"{path}: row {number}")
        else:
            # Lines end at line feeds only: a text may hold the other separators of Unicode.
            for number, line in enumerate(file, start=1):
                if line.strip():
                    yield _object(_parsed(line.rstrip(), path, number), f"{path}:{number}")


def _csv(path: Path, columns: list[str]) -> Iterator[Record]:
    """Yield the rows below the head; the place of one that goes over several lines is its last."""
    try:
        binary = path.open("rb")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    with binary:
        _refuse_mark(binary.read(len(BYTE_ORDER_MARK)), path)
        binary.seek(0)
        csv.field_size_limit(FIELD_CHARACTERS)
        reader = csv.reader(TextIOWrapper(binary, encoding="utf-8", newline=""), strict=True)
        try:
            names = next(reader, [])
            for missing in (column for column in columns if column not in names):
                raise UserError(
                    f"{path}:1: column {missing!r} is missing; there are {', '.join(names)}; "
                    f"change fields"
                )
            if len(set(names)) < len(names):
                raise UserError(f"{path}:1: a column stands twice; rename one of them")
            for values in reader:
                place = f"{path}:{reader.line_num}"
                if values and len(values) != len(names):
                    raise UserError(
                        f"{place}: {len(values)} fields, but {len(names)} columns; mend the line"
                    )
                if values:
                    yield Record(place, dict(zip(names, values, strict=True)))
        except csv.Error as error:
            raise UserError(
                f"{path}:{reader.line_num}: not valid CSV ({error}); mend the line"
            ) from None
        except UnicodeDecodeError:
            raise UserError(
                f"{path}:{reader.line_num + 1}: not UTF-8 text; save the file as UTF-8"
            ) from None


def _refuse_mark(start: bytes, path: Path) -> None:
    if start.startswith(BYTE_ORDER_MARK):
        raise UserError(
            f"{path}:1: begins with a byte-order mark; save the file as UTF-8 without one"
        )


def _parsed(text: bytes, path: Path, line: int) -> Any:
    try:
        return json.loads(text.decode(), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        line += text.count(b"\n", 0, error.start)
        raise UserError(f"{path}:{line}: not UTF-8 text; save the file as UTF-8") from None
    except json.JSONDecodeError as error:
        line += error.lineno - 1
        raise UserError(f"{path}:{line}: not valid JSON ({error.msg}); mend the line") from None
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}:{line}: not valid JSON ({error}); mend the line") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a value")


def _object(value: Any, place: str) -> Record:
    if not isinstance(value, dict):
        raise UserError(f"{place}: is {_short(value)}, not an object with fields; mend the file")
    return Record(place, value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
