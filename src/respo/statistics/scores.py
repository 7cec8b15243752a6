"""Scored responses, summed up by problem."""

import json
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

REQUIRED = ("problem_id", "sample", "correct", "status")
OPTIONAL = ("response_tokens", "truncated")


@dataclass(frozen=True)
class Scores:
    """Counts of one benchmark; problems in the order in which they appear in the file."""

    problem_id: list[str]
    correct_P: np.ndarray
    samples_P: np.ndarray
    status: dict[str, int]  # ok, unparsed, timeout, failed: number of responses
    truncated: int | None  # None where the file does not say
    mean_response_tokens: float | None
    made_from: dict[str, Any]  # provenance, empty for JSON lines

    @property
    def responses(self) -> int:
        """Number of responses."""
        return int(self.samples_P.sum())


def read_scores(path: Path) -> Scores:
    """Read a scores file, Parquet or (``.jsonl``) JSON lines.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a scores file; the text names file, column or line, and what is wrong.
    """
    table = _read_jsonl(path) if path.suffix == ".jsonl" else _read_parquet(path)
    if not table.num_rows:
        raise ValueError(f"{path}: holds no responses")
    for name in REQUIRED:
        if table[name].null_count:
            row = table[name].to_pylist().index(None) + 1
            raise ValueError(f"{path}: column {name!r} is empty in row {row}")
    if not pa.types.is_boolean(table["correct"].type):
        raise ValueError(
            f"{path}: column 'correct' must hold true or false, not {table['correct'].type}"
        )
    ids = [str(name) for name in table["problem_id"].to_pylist()]
    keys = list(zip(ids, table["sample"].to_pylist(), strict=True))
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"{path}: sample {twice[1]} of problem {twice[0]!r} stands there twice")

    problem_id = list(dict.fromkeys(ids))
    position = {name: index for index, name in enumerate(problem_id)}
    problem_B = np.array([position[name] for name in ids])
    correct_B = table["correct"].to_numpy()
    statuses = table["status"].to_pylist()
    return Scores(
        problem_id=problem_id,
        correct_P=np.bincount(problem_B, weights=correct_B).astype(np.int64),
        samples_P=np.bincount(problem_B),
        status={s: statuses.count(s) for s in ("ok", "unparsed", "timeout", "failed")},
        truncated=_total(table, "truncated"),
        mean_response_tokens=_mean(table, "response_tokens"),
        made_from=json.loads((table.schema.metadata or {}).get(b"respo", b"{}")),
    )


def _read_parquet(path: Path) -> pa.Table:
    with path.open("rb") as raw:
        try:
            file = pq.ParquetFile(raw)
            names = file.schema_arrow.names
            _require(path, names)
            return file.read(columns=[name for name in (*REQUIRED, *OPTIONAL) if name in names])
        except (pa.ArrowInvalid, OSError) as error:
            raise ValueError(f"{path}: not a readable Parquet file ({error})") from None


def _read_jsonl(path: Path) -> pa.Table:
    rows = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            row = json.loads(line.decode())
        except ValueError as error:  # not UTF-8, or not JSON
            raise ValueError(f"{path}: line {number} is not JSON ({error})") from None
        if not isinstance(row, dict):
            raise ValueError(f"{path}: line {number} is not a JSON object")
        _require(f"{path}: line {number}", row)
        rows.append({name: row.get(name) for name in (*REQUIRED, *OPTIONAL)})
    if not rows:
        raise ValueError(f"{path}: holds no responses")
    try:
        return pa.Table.from_pylist(rows)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ValueError(f"{path}: a column holds values of several kinds ({error})") from None


def _require(where: object, names: Container[str]) -> None:
    missing = [name for name in REQUIRED if name not in names]
    if missing:
        raise ValueError(
            f"{where}: column {missing[0]!r} is missing; is this a file of respo.evaluation.score?"
        )


def _known(table: pa.Table, name: str) -> bool:
    return name in table.column_names and not table[name].null_count


def _total(table: pa.Table, name: str) -> int | None:
    return int(table[name].to_numpy().sum()) if _known(table, name) else None


def _mean(table: pa.Table, name: str) -> float | None:
    return float(table[name].to_numpy().mean()) if _known(table, name) else None
