"""Reading generated responses, this project's own files and other people's.

Parquet (.parquet) or JSON lines (.jsonl), one row per response or one row per problem, columns:

  answer              gold answer; with the verifier 'choice' a letter from A to J, as B, b, (B) or
                      B.; with 'code' it may be left out, and is then that of the row of --tests
                      whose id is problem_id
  response            text of the response, or
  responses           list of the texts of all responses to the problem
  problem_id or id    name of the problem, or
  problem or prompt   its text; equal texts are one problem, and the problems are named 0, 1, 2, ...
                      in the order in which they appear
  sample              optional: number of the response within its problem, in all rows or in none;
                      default 0, 1, 2, ...
  response_tokens     optional: length in tokens (with responses: a list)
  truncated           optional: whether the length limit ended it (with responses: a list)

Other columns are ignored. Files of lm-evaluation-harness and verl are read as they are, see
`respo.evaluation.formats`.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from respo.cli import UserError
from respo.evaluation.formats import FOREIGN_COLUMNS, translated
from respo.parquet import parquet_batches, parquet_made_from

FORMATS = (".parquet", ".jsonl")
COLUMNS = (
    *("problem_id", "id", "problem", "prompt", "sample", "answer", "response", "responses"),
    *("response_tokens", "truncated"),
)
# From the name of a problem and what column 'answer' holds, if anything, to the gold answer; raises
# a ValueError whose text says what is wrong and the remedy.
Gold = Callable[[str, str | None], str]


class Generation(NamedTuple):
    """One response to one problem."""

    problem_id: str
    sample: int
    answer: str
    response: str
    response_tokens: int | None
    truncated: bool | None
    claimed: bool | None = None  # whether a file of another project calls it correct


class Generations:
    """The responses of a file, in its order, read anew by each iteration and never held at once.

    What stays in memory is one batch of rows, and a few words for each problem.

    Attributes:
        path: the file.
        made_from: its provenance, may be empty.

    Raises:
        UserError: when opened, the file is missing, damaged or empty; during an iteration, a column
            is missing, a value is missing or of the wrong kind, a sample stands there twice or only
            some are numbered; the text names file, row and column.
    """

    def __init__(self, path: Path, gold: Gold | None = None) -> None:
        """Open a file; ``gold`` is how a verifier reads the gold answers, by default as text."""
        if path.suffix not in FORMATS:
            raise UserError(f"{path}: the name must end in {' or '.join(FORMATS)}")
        self.path, self.gold = path, gold
        self.made_from = parquet_made_from(path) if path.suffix == ".parquet" else {}

    def __iter__(self) -> Iterator[Generation]:
        reader = None
        for where, row, claimed in translated(self._rows()):
            reader = reader or _Reader(self.path, list(row), self.gold)
            yield from reader.read(where, row, claimed)
        if not reader:
            raise UserError(f"{self.path}: holds no responses")

    def _rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each row after the words that say where it stands."""
        if self.path.suffix == ".jsonl":
            yield from _json_lines(self.path)
            return
        number = 0
        for batch in parquet_batches(self.path, (*COLUMNS, *FOREIGN_COLUMNS)):
            for row in batch.to_pylist():
                number += 1
                yield f"{self.path}: row {number}", row


def _json_lines(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    with file:
        for number, line in enumerate(file, start=1):
            where = f"{path}: line {number}"
            if number == 1 and line.startswith(b"\xef\xbb\xbf"):
                raise UserError(
                    f"{where} begins with a byte-order mark; save the file as UTF-8 without one"
                )
            if not line.strip():
                continue
            try:
                row = json.loads(line.decode())
            except (
                ValueError,
                RecursionError,
            ) as error:  # not UTF-8, not JSON, or nested endlessly
                raise UserError(f"{where} is not JSON ({error})") from None
            if not isinstance(row, dict):
                raise UserError(f"{where} is not a JSON object with one key per column")
            yield where, row


class _Seen:
    """Numbers that were there; those from 0 on without a gap cost no memory."""

    __slots__ = ("ahead", "first_missing")

    def __init__(self) -> None:
        self.first_missing = 0
        self.ahead: set[int] | None = None

    def add(self, number: int) -> bool:
        """Return whether the number is new."""
        if number < self.first_missing or (self.ahead and number in self.ahead):
            return False
        if number > self.first_missing:
            self.ahead = self.ahead or set()
            self.ahead.add(number)
            return True
        self.first_missing += 1
        while self.ahead and self.first_missing in self.ahead:
            self.ahead.remove(self.first_missing)
            self.first_missing += 1
        return True


@dataclass
class _Reader:
    """Turns rows into responses. Which columns the file has is read off its first row."""

    path: Path
    columns: list[str]
    gold: Gold | None
    names: dict[bytes, str] = field(default_factory=dict)  # hash of a problem's text -> its name
    golds: dict[str, str] = field(default_factory=dict)
    seen: dict[str, _Seen] = field(default_factory=dict)
    numbered: bool | None = None  # whether the first response has a sample

    def __post_init__(self) -> None:
        self.id = self._first("problem_id", "id")
        self.text = None if self.id else self._first("problem", "prompt")
        if not self.id and not self.text:
            raise UserError(
                f"{self.path}: a column 'problem_id' (or 'id'), or else 'problem' (or 'prompt'), "
                f"is missing; there are {', '.join(self.columns) or 'none that are known'}"
            )
        self.form = self._first("response", "responses")
        if not self.form or {"response", "responses"} <= set(self.columns):
            raise UserError(
                f"{self.path}: needs either a column 'response' or a column 'responses'; "
                f"there are {', '.join(self.columns)}"
            )

    def _first(self, *names: str) -> str | None:
        return next((name for name in names if name in self.columns), None)

    def read(self, where: str, row: dict[str, Any], claimed: bool | None) -> Iterator[Generation]:
        problem = self._problem(where, row)
        answer = self._answer(where, row, problem)
        if self.golds.setdefault(problem, answer) != answer:
            raise UserError(
                f"{where}: answer {answer!r} contradicts an earlier row, where problem {problem!r} "
                f"has {self.golds[problem]!r}"
            )
        for sample, response, tokens, truncated in self._samples(where, row):
            if self.numbered is None:
                self.numbered = sample is not None
            if self.numbered != (sample is not None):
                raise UserError(
                    f"{where}: column 'sample' is {'empty' if self.numbered else 'filled'}, but "
                    f"not in the rows before; number all responses or none"
                )
            seen = self.seen.setdefault(problem, _Seen())
            number = seen.first_missing if sample is None else sample
            if not seen.add(number):
                raise UserError(f"{where}: sample {number} of problem {problem!r} stands twice")
            yield Generation(problem, number, answer, response, tokens, truncated, claimed)

    def _problem(self, where: str, row: dict[str, Any]) -> str:
        if self.id:
            return _text(where, row, self.id, or_number=True)
        assert self.text is not None
        text = _text(where, row, self.text)
        key = hashlib.blake2b(text.encode(), digest_size=16).digest()
        return self.names.setdefault(key, str(len(self.names)))

    def _answer(self, where: str, row: dict[str, Any], problem: str) -> str:
        answer = None
        if self.gold is None or row.get("answer") is not None:
            answer = _text(where, row, "answer", or_number=True)
            if not answer:
                raise UserError(f"{where}: column 'answer' is empty")
            if self.gold is None:
                return answer
        try:
            return self.gold(problem, answer)
        except ValueError as error:
            raise UserError(f"{where}: {error}") from None

    def _samples(
        self, where: str, row: dict[str, Any]
    ) -> Iterator[tuple[int | None, str, int | None, bool | None]]:
        """Yield sample, response, tokens, truncated; a missing value is None."""
        if self.form == "response":
            yield (
                _optional(where, row, "sample", int),
                _response(where, row, "response"),
                _optional(where, row, "response_tokens", int),
                _optional(where, row, "truncated", bool),
            )
            return
        responses = _list(where, row, "responses")
        if not responses:
            raise UserError(f"{where}: column 'responses' is empty")
        for index in range(len(responses)):
            # One response of the list, as if it stood in a row of its own.
            single = {
                name: values[index]
                for name in ("responses", "response_tokens", "truncated")
                if (values := _list(where, row, name, length=len(responses))) is not None
            }
            yield (
                None,
                _response(f"{where}, response {index + 1}", single, "responses"),
                _optional(where, single, "response_tokens", int),
                _optional(where, single, "truncated", bool),
            )


def _response(where: str, row: dict[str, Any], name: str) -> str:
    # JSON can carry halves of surrogate pairs, which no UTF-8 file can hold.
    return _any_text(where, row, name, False).encode("utf-8", "replace").decode()


def _text(where: str, row: dict[str, Any], name: str, or_number: bool = False) -> str:
    text = _any_text(where, row, name, or_number)
    try:
        text.encode()
    except UnicodeEncodeError:  # with another in its place two names could become one
        raise UserError(
            f"{where}: column {name!r} holds half of a surrogate pair, {text!a:.50}; mend the row"
        ) from None
    return text


def _any_text(where: str, row: dict[str, Any], name: str, or_number: bool) -> str:
    if row.get(name) is None:
        raise UserError(f"{where}: column {name!r} is {'empty' if name in row else 'missing'}")
    value = row[name]
    if or_number and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise UserError(f"{where}: column {name!r} must hold text, not {value!r:.50}")
    return value


def _optional(where: str, row: dict[str, Any], name: str, kind: type) -> Any:
    value = row.get(name)
    if value is not None and type(value) is not kind:
        wanted = "whole numbers" if kind is int else "true or false"
        raise UserError(f"{where}: column {name!r} must hold {wanted}, not {value!r:.50}")
    if kind is int and isinstance(value, int) and not 0 <= value < 2**31:
        raise UserError(f"{where}: column {name!r} must lie between 0 and 2**31 - 1, not {value}")
    return value


def _list(where: str, row: dict[str, Any], name: str, length: int | None = None) -> Any:
    value = row.get(name)
    if value is None and length is not None:
        return None
    if not isinstance(value, list):
        raise UserError(f"{where}: column {name!r} must hold a list, not {value!r:.50}")
    if length is not None and len(value) != length:
        raise UserError(f"{where}: {name!r} has {len(value)} entries for {length} responses")
    return value
