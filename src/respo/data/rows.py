"""Rows of published files in the project's schema: `id`, `prompt`, `answer`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from respo.cli import UserError
from respo.config.schema import Rows
from respo.data import fields
from respo.data.records import Record, records

T = TypeVar("T")


@dataclass
class Row:
    """One row, and the place it was found at."""

    id: str
    prompt: str
    answer: str
    place: str


@dataclass
class Reading:
    """The rows of some files and what became of the others."""

    rows: list[Row] = field(default_factory=list)
    read: int = 0
    # One for each prompt that was dropped, since its copies disagree on the answer: the first copy.
    disagreeing: list[Row] = field(default_factory=list)

    @property
    def copies(self) -> int:
        """Rows that were left out since a row before has the same prompt."""
        return self.read - len(self.rows) - len(self.disagreeing)

    def table(self) -> pa.Table:
        """Return the rows as a table."""
        return pa.table(
            {key: [getattr(row, key) for row in self.rows] for key in ("id", "prompt", "answer")},
            schema=pa.schema([(key, pa.string()) for key in ("id", "prompt", "answer")]),
        )

    def summary(self) -> list[str]:
        """Return lines that tell what was read and what was left out."""
        lines = [f"{self.read} rows read, {len(self.rows)} kept"]
        if self.copies:
            lines.append(f"{self.copies} copies of a prompt left out")
        if self.disagreeing:
            places = ", ".join(row.place for row in self.disagreeing[:5])
            more = ", ..." if len(self.disagreeing) > 5 else ""
            lines.append(
                f"{len(self.disagreeing)} prompts dropped, since copies disagree on the answer: "
                f"{places}{more} (the file's provenance lists them all)"
            )
        return lines


def read_rows(config: Rows, files: Sequence[Path]) -> Reading:
    """Read the rows of files, in order.

    Args:
        config: what each field means and what the files must hold.
        files: the files themselves.

    Raises:
        UserError: a file or a row of it cannot be used, or there are not as many rows as expected;
            the text names file and line or row, and the remedy.
    """
    reading = Reading()
    places: dict[str, str] = {}
    first: dict[str, Row] = {}
    disagreeing: dict[str, Row] = {}
    named = [name for name in config.fields.model_dump().values() if name]
    columns = [name.partition(".")[0] for name in named]
    for file in files:
        for record in records(file, columns):
            row = _row(config, record, reading.read)
            reading.read += 1
            earlier = first.setdefault(row.prompt, row) if config.distinct else row
            if earlier is not row:
                if earlier.answer != row.answer:
                    disagreeing[row.prompt] = earlier
                continue
            if row.id in places:
                raise UserError(
                    f"{row.place}: id {row.id!r} stands in {places[row.id]} too; make it unique or "
                    f"leave fields.id out"
                )
            places[row.id] = row.place
            reading.rows.append(row)
    reading.rows = [row for row in reading.rows if row.prompt not in disagreeing]
    reading.disagreeing = list(disagreeing.values())
    _check_count(config, reading, files)
    return reading


def _row(config: Rows, record: Record, position: int) -> Row:
    where, values = config.fields, record.values

    def get(key: str, name: str, convert: Callable[[Any], T]) -> T:
        try:
            return convert(fields.field(values, name))
        except ValueError as error:
            raise UserError(
                f"{record.place}: {error}; mend the row or change fields.{key} ({name!r})"
            ) from None

    prompt = get("prompt", where.prompt, fields.question)
    return Row(
        id=get("id", where.id, fields.name) if where.id else f"row-{position:05d}",
        prompt=config.template.replace("{prompt}", prompt),
        answer=get("answer", where.answer, lambda v: fields.gold_answer(v, config.answer)),
        place=record.place,
    )


def _check_count(config: Rows, reading: Reading, files: Sequence[Path]) -> None:
    names = ", ".join(map(str, files))
    if config.rows not in (None, reading.read):
        raise UserError(
            f"{names}: {reading.read} rows, but rows is {config.rows}; get the right file, or "
            f"change rows or leave it out"
        )
    if not reading.rows:
        raise UserError(f"{names}: no row is left; get the right file")
