"""The tests of a benchmark's code problems, read from disk one problem at a time."""

from hashlib import sha256
from pathlib import Path
from types import TracebackType

import pyarrow as pa
import pyarrow.parquet as pq

from respo.cli import UserError
from respo.evaluation.generations import Generation, Gold
from respo.evaluation.problems import HELD_OUT, REMEDY
from respo.parquet import read_parquet


def gold_of(path: Path) -> Gold:
    """Return what finds the answer of a problem by its id, where a row of responses has none.

    Raises:
        UserError: the file is missing, damaged or lacks a column.
    """
    table = read_parquet(path, ["id", "answer"], REMEDY)
    answers = dict(zip(table["id"].to_pylist(), table["answer"].to_pylist(), strict=True))

    def gold(problem: str, answer: str | None) -> str:
        if answer is None and problem not in answers:
            raise ValueError(
                f"{path} has no problem {problem!r}; write an id of that file into column "
                "'problem_id', or give the file that the responses are to"
            )
        return answers[problem] if answer is None else answer

    return gold


class ProgramTests:
    """Finds the tests of a problem by their hash, which is its answer.

    A file of the benchmark has one row in each row group, so that little else is read with it.

    Raises:
        UserError: the file is missing, damaged or has no column ``tests``.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        answers = read_parquet(path, ["answer"], REMEDY)["answer"].to_pylist()
        self._file = pq.ParquetFile(path)
        if "tests" not in self._file.schema_arrow.names:
            self._file.close()
            raise UserError(
                f"{path}: column 'tests' is missing; --tests takes the problems of a code "
                f"benchmark, {HELD_OUT}"
            )
        metadata = self._file.metadata
        places = (
            (group, row)
            for group in range(metadata.num_row_groups)
            for row in range(metadata.row_group(group).num_rows)
        )
        self._places = dict(zip(answers, places, strict=True))

    def of(self, generation: Generation) -> str:
        """Return the tests of the problem that a response is to.

        Raises:
            UserError: the file does not hold them, or holds others than its ``answer`` says.
        """
        problem, answer = generation.problem_id, generation.answer
        if answer not in self._places:
            raise UserError(
                f"{self.path}: has no problem with the answer {answer!r:.80} of problem "
                f"{problem!r}; give the file that the generations were made from"
            )
        group, row = self._places[answer]
        try:
            tests = self._file.read_row_group(group, columns=["tests"])["tests"][row].as_py()
        except (pa.ArrowException, OSError) as error:
            reason = " ".join(str(error).split())
            raise UserError(
                f"{self.path}: not a readable Parquet file ({reason}). {REMEDY}."
            ) from None
        if tests is None or sha256(tests.encode()).hexdigest() != answer:
            raise UserError(
                f"{self.path}: problem {problem!r}: column 'answer' is not the sha256 of column "
                f"'tests'. {REMEDY}."
            )
        return tests

    def __enter__(self) -> "ProgramTests":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()
