"""Rows of published files in the project's schema: `id`, `prompt`, `answer`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from respo.cli import UserError
from respo.config.schema import Rows, Union
from respo.data import fields
from respo.data.records import Record, records

T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """One row, and the place it was found at."""

    id: str
    prompt: str
    answer: str
    place: str


@dataclass
class Reading:
    """The rows of some files and what became of the others."""

    # Whether the first copy of a prompt is kept only, and none if the answers differ.
    distinct: bool = False
    read: int = 0
    # Rows that were left out since they have no gold answer, or several.
    unanswered: int = 0
    _first: dict[str, Row] = field(default_factory=dict)  # by id, without copies
    _prompts: dict[str, Row] = field(default_factory=dict)
    _disagreeing: dict[str, Row] = field(default_factory=dict)

    def add(self, row: Row) -> None:
        """Keep a row, unless it is a copy.

        Raises:
            UserError: another row has its id.
        """
        earlier = self._prompts.setdefault(row.prompt, row) if self.distinct else row
        if earlier is not row:
            if earlier.answer != row.answer:
                self.drop(earlier)
        elif (other := self._first.setdefault(row.id, row)) is not row:
            raise UserError(
                f"{row.place}: id {row.id!r} stands in {other.place} too; make it unique or leave "
                f"fields.id out"
            )

    def drop(self, row: Row) -> None:
        """Leave out all rows with the prompt of this one, since its copies disagree."""
        self._disagreeing.setdefault(row.prompt, row)

    @property
    def rows(self) -> list[Row]:
        """The rows that are kept."""
        return [row for row in self._first.values() if row.prompt not in self._disagreeing]

    @property
    def disagreeing(self) -> list[Row]:
        """The first row of each prompt that was dropped, since its copies disagree."""
        return list(self._disagreeing.values())

    @property
    def copies(self) -> int:
        """Rows that were left out since another row stands for their prompt."""
        return self.read - self.unanswered - len(self.rows) - len(self._disagreeing)

    def table(self) -> pa.Table:
        """Return the rows as a table."""
        rows = self.rows
        return pa.table(
            {key: [getattr(row, key) for row in rows] for key in ("id", "prompt", "answer")},
            schema=pa.schema([(key, pa.string()) for key in ("id", "prompt", "answer")]),
        )

    def summary(self) -> list[str]:
        """Return lines that tell what was read and what was left out."""
        lines = [f"{self.read} rows read, {len(self.rows)} kept"]
        if copies := self.copies:
            lines.append(f"{copies} copies of a prompt left out")
        if self.unanswered:
            lines.append(f"{self.unanswered} rows without one gold answer left out")
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
    reading = Reading(config.distinct)
    named = [name for name in config.fields.model_dump().values() if name]
    columns = [name.partition(".")[0] for name in named]
    for file in files:
        for record in records(file, columns):
            row = _row(config, record, reading.read)
            reading.read += 1
            if row:
                reading.add(row)
            else:
                reading.unanswered += 1
    check_count(files, config.rows, reading.read, len(reading.rows))
    return reading


def read_union(config: Union, files: Sequence[Sequence[Path]]) -> Reading:
    """Read several sets of rows, one after the other; the number of its set precedes a row's id.

    Args:
        config: the sets.
        files: the files of each set.

    Raises:
        UserError: as `read_rows`.
    """
    whole = Reading(config.distinct)
    for number, (part, paths) in enumerate(zip(config.parts, files, strict=True), start=1):
        reading = read_rows(part, paths)
        whole.read += reading.read
        whole.unanswered += reading.unanswered
        for row in reading.rows:
            whole.add(replace(row, id=f"{number}-{row.id}"))
        for row in reading.disagreeing:
            whole.drop(replace(row, id=f"{number}-{row.id}"))
    return whole


def _row(config: Rows, record: Record, position: int) -> Row | None:
    """Return a row, or nothing if it has no gold answer and such rows are to be dropped."""
    where, values = config.fields, record.values

    def get(key: str, name: str, convert: Callable[[Any], T]) -> T:
        try:
            return convert(fields.field(values, name))
        except fields.NoAnswer as error:
            if config.drop_unanswered:
                raise
            raise UserError(
                f"{record.place}: {error}; mend the row, change fields.{key} ({name!r}), or set "
                f"drop_unanswered"
            ) from None
        except ValueError as error:
            raise UserError(
                f"{record.place}: {error}; mend the row or change fields.{key} ({name!r})"
            ) from None

    prompt = get("prompt", where.prompt, fields.question)
    name = get("id", where.id, fields.name) if where.id else f"row-{position:05d}"
    try:
        answer = get("answer", where.answer, lambda v: fields.gold_answer(v, config.answer))
    except fields.NoAnswer:
        return None
    return Row(name, config.template.replace("{prompt}", prompt), answer, record.place)


def check_count(files: Sequence[Path], expected: int | None, read: int, kept: int) -> None:
    """Refuse another number of rows than expected, or none.

    Raises:
        UserError: ``read`` is not ``expected`` (None: any), or ``kept`` is 0.
    """
    names = ", ".join(map(str, files))
    if expected not in (None, read):
        raise UserError(
            f"{names}: {read} rows, but rows is {expected}; get the right file, or change rows or "
            f"leave it out"
        )
    if not kept:
        raise UserError(f"{names}: no row is left; get the right file")
