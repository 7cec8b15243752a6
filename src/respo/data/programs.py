"""Problems to be programmed, with the tests of each: `id`, `prompt`, `answer`, `tests`.

The tests of one problem can have hundreds of megabytes, so no more than one is held at a time.
`tests` is `{"function": null or a name, "tests": [{"input": text, "output": text}, ...]}` as JSON:
null for a program that reads standard input, else a function, or method of a class `Solution`, that
gets one JSON value per line of the input and returns what the output is as JSON. `answer` is the
hash of that text, by which scores know it again.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from respo.cli import UserError
from respo.config.schema import Programs
from respo.data import deepcoder, fields, livecodebench
from respo.data.problem import Case, Problem
from respo.data.records import Record, records
from respo.data.rows import check_count

FORMS = {"livecodebench": livecodebench, "deepcoder": deepcoder}
# Rows of a Parquet file that are held in memory at once.
BATCH_ROWS = 8
PLACES = re.compile(r"\{(prompt|starter_code)\}")


@dataclass
class ProgramReading:
    """The problems of some files, read while they are iterated over, and what became of the others.

    Args:
        config: what the files must hold.
        files: the files themselves.
    """

    config: Programs
    files: Sequence[Path]
    # Problems of the files, and those of them in the window of dates.
    read: int = 0
    inside: int = 0
    # Problems of the window that were left out since they have no usable tests.
    unanswered: int = 0
    _places: dict[str, str] = field(default_factory=dict)

    def __iter__(self) -> Iterator[dict[str, str]]:
        """Yield the rows in order.

        Raises:
            UserError: a file or a problem of it cannot be used, or there are not as many as
                expected; the text names file and line or row, and the remedy.
        """
        form = FORMS[self.config.form]
        for file in self.files:
            for record in records(file, form.COLUMNS, form.OPTIONAL, BATCH_ROWS):
                if row := self._row(record):
                    yield row
        check_count(self.files, self.config.rows, self.inside, len(self._places))

    def summary(self) -> list[str]:
        """Return lines that tell what was read and what was left out."""
        lines = [f"{self.read} problems read, {len(self._places)} kept"]
        if outside := self.read - self.inside:
            lines.append(f"{outside} problems outside the window of dates left out")
        if self.unanswered:
            lines.append(f"{self.unanswered} problems without usable tests left out")
        return lines

    def _row(self, record: Record) -> dict[str, str] | None:
        form = FORMS[self.config.form]
        position = self.read
        self.read += 1
        try:
            if not _in_window(self.config, form.date(record.values)):
                return None
            self.inside += 1
            problem = form.problem(record.values)
            tests = _chosen(self.config, problem.tests)
        except fields.NoAnswer as error:
            if self.config.drop_unanswered:
                self.unanswered += 1
                return None
            raise UserError(
                f"{record.place}: {error}; mend the row or set drop_unanswered"
            ) from None
        except ValueError as error:
            raise UserError(f"{record.place}: {error}; mend the row or change form") from None
        name = problem.name or f"row-{position:05d}"
        if (other := self._places.setdefault(name, record.place)) != record.place:
            raise UserError(f"{record.place}: id {name!r} stands in {other} too; make it unique")
        text = json.dumps(
            {"function": problem.function, "tests": [test._asdict() for test in tests]}
        )
        return {
            "id": name,
            "prompt": _prompt(self.config, problem),
            "answer": hashlib.sha256(text.encode()).hexdigest(),
            "tests": text,
        }


def _in_window(config: Programs, day: datetime | None) -> bool:
    """Tell whether a contest is in the window: both ends are the midnight that begins the day."""
    if day is None:
        return True
    first = datetime.fromisoformat(config.start_date) if config.start_date else day
    last = datetime.fromisoformat(config.end_date) if config.end_date else day
    return first <= day <= last


def _chosen(config: Programs, tests: Sequence[Case]) -> list[Case]:
    """Return the tests that are kept, in their order.

    Raises:
        NoAnswer: there is none.
    """
    # The longest inputs are the hardest to get right; DeepCoder trains on 15 such.
    by_length = sorted(range(len(tests)), key=lambda index: -len(tests[index].input))
    kept, left = set[int](), config.max_test_bytes
    for index in by_length:
        if len(kept) == config.max_tests:
            break
        size = sum(len(text.encode()) for text in tests[index])
        if left is None or size <= left:
            kept.add(index)
            left = None if left is None else left - size
    if not kept:
        raise fields.NoAnswer("there is no test" + " that fits into max_test_bytes" * bool(tests))
    return [test for index, test in enumerate(tests) if index in kept]


def _prompt(config: Programs, problem: Problem) -> str:
    template = config.starter_template if problem.starter_code else config.template
    parts = {"prompt": problem.prompt, "starter_code": problem.starter_code}
    return PLACES.sub(lambda place: parts[place[1]], template)
