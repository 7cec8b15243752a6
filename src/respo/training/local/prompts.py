"""The prompts of a training set, in an order that the seed alone decides."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from respo.cli import UserError
from respo.parquet import parquet_columns, read_parquet
from respo.policy import Tokenizer


@dataclass(frozen=True)
class Prompt:
    """A row of the training set with its token ids."""

    text: str
    ids: list[int]
    answer: str


@dataclass(frozen=True)
class Prompts:
    """The rows to train on, and how many were dropped for their length."""

    rows: list[Prompt]
    dropped: int

    def take(self, first: int, count: int, seed: int) -> list[Prompt]:
        """Return ``count`` prompts from position ``first`` of the endless stream of epochs."""
        order = shuffled_epochs(len(self.rows), seed, first_epoch=first // len(self.rows))
        start = first % len(self.rows)
        return [self.rows[index] for index in islice(order, start, start + count)]


def shuffled_epochs(rows: int, seed: int, first_epoch: int = 0) -> Iterator[int]:
    """Yield row indices for ever, each epoch in an order of its own, drawn from (seed, epoch)."""
    epoch = first_epoch
    while True:
        generator = np.random.Generator(np.random.Philox(np.random.SeedSequence((seed, 0, epoch))))
        yield from generator.permutation(rows).tolist()
        epoch += 1


def read_rows(path: Path) -> list[dict[str, str]]:
    """Read a training set: `id`, `prompt` and, as `answer`, what the reward needs.

    That is the column ``answer``, of problems to be programmed the column ``tests``.

    Raises:
        UserError: the file cannot be used.
    """
    table = read_parquet(path, ["id", "prompt", "answer"])
    if "tests" in parquet_columns(path):
        table = table.set_column(2, "answer", read_parquet(path, ["tests"]).column(0))
    rows: list[dict[str, str]] = table.to_pylist()
    return rows


def load_prompts(path: Path, tokenizer: Tokenizer, max_prompt_tokens: int) -> Prompts:
    """Read a training set.

    Prompts of more than ``max_prompt_tokens`` are dropped and counted, never truncated.

    Raises:
        UserError: the file cannot be used; file, row and remedy are named.
    """
    table = read_rows(path)
    rows = []
    for row in table:
        if not row["prompt"] or row["answer"] is None:
            raise UserError(f"{path}: row {row['id']!r}: prompt or answer is empty; mend the data")
        try:
            ids = tokenizer.encode(row["prompt"])
        except UserError as error:
            raise UserError(f"{path}: row {row['id']!r}: {error}") from None
        if len(ids) <= max_prompt_tokens:
            rows.append(Prompt(row["prompt"], ids, row["answer"]))
    if not rows:
        raise UserError(
            f"{path}: none of {len(table)} prompts has at most {max_prompt_tokens} tokens; "
            f"raise max_prompt_tokens or add data"
        )
    return Prompts(rows, dropped=len(table) - len(rows))
