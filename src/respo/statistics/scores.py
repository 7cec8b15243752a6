"""Scored responses, summed up by problem."""

import hashlib
import json
import os
from collections.abc import Callable, Container
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from respo.statistics.majority import majority_vote

MARK = b"respo footer sha256:"  # before the SHA-256 of a Parquet file's footer, and that before it
STATUSES = ("ok", "unparsed", "timeout", "failed")


@dataclass(frozen=True)
class Scores:
    """Counts of one benchmark; problems in the order in which they appear in the file."""

    problem_id: list[str]
    correct_P: np.ndarray
    samples_P: np.ndarray
    status: dict[str, int]  # ok, unparsed, timeout, failed: number of responses
    truncated: int | None  # None where the file does not say
    mean_response_tokens: float | None
    majority_P: np.ndarray | None  # whether the vote is right; None where there is no `boxed`
    made_from: dict[str, Any]  # provenance, empty for JSON lines

    @property
    def responses(self) -> int:
        """Number of responses."""
        return int(self.samples_P.sum())


# For each column what it must hold, in words and as a test.
Kind = tuple[str, Callable[[Any], bool]]
COUNT: Kind = (
    "a whole number from 0 to 2**31 - 1",
    lambda value: type(value) is int and 0 <= value < 2**31,
)
BOOL: Kind = ("true or false", lambda value: type(value) is bool)
REQUIRED: dict[str, Kind] = {
    "problem_id": ("text or a whole number", lambda value: type(value) in (str, int)),
    "sample": COUNT,
    "correct": BOOL,
    "status": (f"one of {', '.join(STATUSES)}", lambda value: value in STATUSES),
}
TEXT: Kind = ("text", lambda value: type(value) is str)
OPTIONAL: dict[str, Kind] = {"response_tokens": COUNT, "truncated": BOOL, "boxed": TEXT}


def read_scores(path: Path) -> Scores:
    """Read a scores file, Parquet or (``.jsonl``) JSON lines.

    Raises:
        OSError: the file cannot be opened.
        ValueError: it is not a scores file; the text names file, line or row and column, and what
            is wrong.
    """
    is_jsonl = path.suffix == ".jsonl"
    unit = "line" if is_jsonl else "row"
    columns, made_from = _read_jsonl(path) if is_jsonl else _read_parquet(path)
    if not columns["problem_id"]:
        raise ValueError(f"{path}: holds no responses")
    for name, kind in REQUIRED.items():
        _check(f"{path}: {unit}", name, columns[name], kind)
    for name, kind in OPTIONAL.items():
        _check(f"{path}: {unit}", name, columns.get(name, []), kind, may_be_empty=True)
    ids = [str(name) for name in columns["problem_id"]]
    _check_distinct(f"{path}: {unit}", ids, columns["sample"])

    problem_id = list(dict.fromkeys(ids))
    position = {name: index for index, name in enumerate(problem_id)}
    problem_B = np.array([position[name] for name in ids])
    tokens = columns.get("response_tokens", [None])
    truncated = columns.get("truncated", [None])
    return Scores(
        problem_id=problem_id,
        correct_P=np.bincount(problem_B, weights=columns["correct"]).astype(np.int64),
        samples_P=np.bincount(problem_B),
        status={status: columns["status"].count(status) for status in STATUSES},
        truncated=None if None in truncated else sum(truncated),
        mean_response_tokens=None if None in tokens else sum(tokens) / len(tokens),
        majority_P=_majority(problem_B, columns) if "boxed" in columns else None,
        made_from=made_from,
    )


def _majority(problem_B: np.ndarray, columns: dict[str, list[Any]]) -> np.ndarray:
    order_B = np.lexsort((columns["sample"], problem_B))
    starts = np.flatnonzero(np.diff(problem_B[order_B])) + 1
    votes = [
        majority_vote(
            [columns["boxed"][row] for row in rows], [columns["correct"][row] for row in rows]
        )
        for rows in np.split(order_B, starts)
    ]
    return np.array(votes)


def _read_parquet(path: Path) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Return the columns that are there, None where there is no value, and the provenance."""
    wanted = [*REQUIRED, *OPTIONAL]
    with path.open("rb") as raw:
        try:
            _check_footer(raw)
            file = pq.ParquetFile(raw, page_checksum_verification=True)
            names = file.schema_arrow.names
            table = file.read(columns=[name for name in wanted if name in names])
            table.validate(full=True)
            _check_rows(file.metadata, table.num_rows)
            columns = {name: table[name].to_pylist() for name in table.column_names}
        except (pa.ArrowException, OSError, KeyError, ValueError) as error:
            reason = " ".join(str(error).split())
            raise ValueError(
                f"{path}: not a readable Parquet file ({reason}). Delete it and start again."
            ) from None
    _require(str(path), names)
    made_from = _provenance(path, table)
    return columns, made_from


def _check_footer(raw: BinaryIO) -> None:
    """Compare the footer, which has no checksum, with its hash if that lies before it."""
    size = raw.seek(0, os.SEEK_END)
    raw.seek(max(size - 8, 0))
    footer_size = int.from_bytes(raw.read(4), "little") + 8
    seal_size = len(MARK) + hashlib.sha256().digest_size
    if size < footer_size + seal_size:
        return
    raw.seek(-footer_size - seal_size, os.SEEK_END)
    seal, footer = raw.read(seal_size), raw.read()
    if seal.startswith(MARK) and seal != MARK + hashlib.sha256(footer).digest():
        raise ValueError("its footer was changed or damaged after the file was written")


def _check_rows(metadata: pq.FileMetaData, found: int) -> None:
    groups = sum(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))
    if not groups == metadata.num_rows == found:
        raise ValueError(
            f"its footer counts {metadata.num_rows} rows, its row groups {groups}, and {found} can "
            "be read"
        )


def _provenance(path: Path, table: pa.Table) -> dict[str, Any]:
    metadata = table.schema.metadata or {}
    text = metadata.get(b"respo", b"{}")
    try:
        made_from = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path}: metadata 'respo' is not JSON ({error}). Delete it and start again."
        ) from None
    if not isinstance(made_from, dict):
        raise ValueError(
            f"{path}: metadata 'respo' is not a JSON object. Delete it and start again."
        )
    found = hashlib.sha256(text).hexdigest().encode()
    if metadata.get(b"respo_sha256", found) != found:
        raise ValueError(
            f"{path}: metadata 'respo' was changed or damaged after the file was written. "
            "Delete it and start again."
        )
    return made_from


def _read_jsonl(path: Path) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """Return the columns that are there, None where there is no value, and no provenance."""
    columns: dict[str, list[Any]] = {name: [] for name in (*REQUIRED, *OPTIONAL)}
    there = set(REQUIRED)
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            row = json.loads(line.decode())
        except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, or nested endlessly
            raise ValueError(f"{path}: line {number} is not JSON ({error})") from None
        if not isinstance(row, dict):
            raise ValueError(f"{path}: line {number} is not a JSON object")
        _require(f"{path}: line {number}", row)
        there |= row.keys()
        for name, values in columns.items():
            values.append(row.get(name))
    return {name: values for name, values in columns.items() if name in there}, {}


def _require(where: str, names: Container[str]) -> None:
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise ValueError(
            f"{where}: column {missing[0]!r} is missing; is this a file of respo.evaluation.score?"
        )


def _check(
    where: str, name: str, values: list[Any], kind: Kind, may_be_empty: bool = False
) -> None:
    wanted, fits = kind
    for number, value in enumerate(values, start=1):
        if value is None and may_be_empty:
            continue
        if value is None:
            raise ValueError(f"{where} {number}: column {name!r} is empty; it must hold {wanted}")
        if not fits(value):
            raise ValueError(
                f"{where} {number}: column {name!r} must hold {wanted}, not {value!r:.50}"
            )


def _check_distinct(where: str, ids: list[str], samples: list[int]) -> None:
    seen: set[tuple[str, int]] = set()
    for number, key in enumerate(zip(ids, samples, strict=True), start=1):
        if key in seen:
            raise ValueError(
                f"{where} {number}: sample {key[1]} of problem {key[0]!r} stands there twice"
            )
        seen.add(key)
