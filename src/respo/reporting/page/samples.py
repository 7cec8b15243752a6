"""A few responses of a cell, chosen by a rule that knows nothing of what they say."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from respo.cli import UserError
from respo.parquet import parquet_take, read_parquet

EACH = 2  # right ones, and wrong ones
PROMPT = 1000  # characters that are shown
HEAD, TAIL = 500, 500  # of a response: the answer is at its end
VERDICT = ("extracted", "status", "response_tokens", "truncated")
RULE = (
    "Responses shown of a cell: the problems are put in the order of the SHA-256 of their ids, the "
    f"same for all runs; of the first {EACH} problems with a right response the first right one, "
    f"of the first {EACH} with a wrong response the first wrong one. Of a response longer than "
    f"{HEAD + TAIL} characters the first {HEAD} and the last {TAIL} are shown."
)


def choose(path: Path) -> list[dict[str, Any]]:
    """Choose responses by their verdicts.

    Args:
        path: `scores.parquet`.

    Returns:
        For each its row number (`row`), problem, sample and verdict, the right ones first; empty
        where there is no such file.

    Raises:
        UserError: the file is damaged or lacks a column.
    """
    if not path.is_file():
        return []
    table = read_parquet(path, ["problem_id", "sample", "correct", *VERDICT])
    names, problem = np.unique(table["problem_id"].to_numpy(), return_inverse=True)
    place = np.argsort(np.argsort([hashlib.sha256(name.encode()).hexdigest() for name in names]))
    correct = table["correct"].to_numpy(zero_copy_only=False).astype(bool)
    order = np.lexsort((table["sample"].to_numpy(), place[problem]))
    chosen = []
    for verdict in (True, False):
        rows = order[correct[order] == verdict]
        first = np.unique(place[problem[rows]], return_index=True)[1][:EACH]
        chosen += rows[first].tolist()
    return [{"row": row, **_verdict(table.slice(row, 1).to_pylist()[0])} for row in chosen]


def _verdict(row: dict[str, Any]) -> dict[str, Any]:
    extracted = row["extracted"]
    return {
        "problem": row["problem_id"],
        **{name: row[name] for name in ("sample", "correct", *VERDICT)},
        "extracted": None if extracted is None else shortened(extracted, HEAD, TAIL),
    }


def read(path: Path, chosen: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add prompt, gold answer and response to what was chosen.

    Args:
        path: `generations.parquet`.
        chosen: as `choose` returns it.

    Returns:
        Empty where there is no such file.

    Raises:
        UserError: the file is damaged, or holds other responses than the scores.
    """
    if not path.is_file():
        return []
    names = ["problem_id", "sample", "prompt", "answer", "response"]
    texts = parquet_take(path, names, [sample["row"] for sample in chosen])
    shown = []
    for sample, text in zip(chosen, texts, strict=True):
        if (text["problem_id"], text["sample"]) != (sample["problem"], sample["sample"]):
            raise UserError(
                f"{path}: row {sample['row'] + 1}: is not the response that "
                f"{path.with_name('scores.parquet')} judges there; score it anew"
            )
        rest = {name: value for name, value in sample.items() if name != "row"}
        shown.append(
            {
                **rest,
                "prompt": shortened(text["prompt"], PROMPT, 0),
                "answer": shortened(text["answer"], PROMPT, 0),
                "response": shortened(text["response"], HEAD, TAIL),
            }
        )
    return shown


def shortened(text: str, head: int, tail: int) -> str:
    """Return a text, or if it is longer, its first and last characters and how many are between."""
    left_out = len(text) - head - tail
    if left_out <= 0:
        return text
    return f"{text[:head]} […{left_out} characters…] {text[len(text) - tail :]}"
