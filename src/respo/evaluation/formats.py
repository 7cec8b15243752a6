"""Files of other projects, told by their columns, as rows of `respo.evaluation.generations`.

  lm-evaluation-harness, samples_*.jsonl of --log_samples: doc_id, target, resps, filter, metrics.
      Of a document that stands there once per filter the first filter counts. The gold answer is
      the target; of a worked solution what follows '####' (GSM8K) or its last box. Tasks that
      compare log-likelihoods have no responses.
  verl, {step}.jsonl of trainer.validation_data_dir or rollout_data_dir: input, output, gts, score,
      perhaps acc. The input is a chat with its special tokens left out ('user', 'assistant'); it
      only names the problem. The output has no special tokens, and is taken as it stands.
  verl, Parquet of main_generation: prompt, responses, reward_model.ground_truth.

A gold answer may be a number or a list of one.

The first two say themselves which responses are correct: where acc is true or, without acc, score
positive; where the first metric of a document with a single response is 1. `score` counts how often
its verdict differs.
"""

from collections.abc import Callable, Iterator
from typing import Any

from respo.cli import UserError
from respo.data.fields import decimal_text
from respo.rewards import boxed_answer

Row = dict[str, Any]
# A row of another project: our columns, and whether it calls the response correct.
Translation = tuple[Row, bool | None]

FOREIGN_COLUMNS = ("reward_model",)


def translated(rows: Iterator[tuple[str, Row]]) -> Iterator[tuple[str, Row, bool | None]]:
    """Yield for each row its place, its values in our columns, and the file's own verdict.

    Raises:
        UserError: a row of another project lacks what it must have.
    """
    translate: Callable[[str, Row], Translation] | None = None
    first: Row | None = None
    for where, row in rows:
        if first is None:
            first, translate = row, _translator(set(row))
        if translate is None:
            yield where, row, None
            continue
        if ("filter" in row) != ("filter" in first):
            raise UserError(f"{where}: column 'filter' is in some rows only; mend the file")
        if row.get("filter") == first.get("filter"):
            yield where, *translate(where, row)


def _translator(columns: set[str]) -> Callable[[str, Row], Translation] | None:
    """Return None for our own columns, and for those that nobody knows."""
    if {"input", "output", "gts"} <= columns:  # beside what a reward function adds to them
        return _verl_dump
    if "answer" in columns:
        return None
    if {"doc_id", "target", "resps"} <= columns:
        return _harness
    if {"input", "output", "score"} <= columns:
        return _verl_dump
    if {"prompt", "responses", "reward_model"} <= columns:
        return _verl_generation
    return None


def _harness(where: str, row: Row) -> Translation:
    # One entry per request; a request has as many responses as the task repeats it.
    requests = _value(where, row, "resps")
    responses = requests[0] if isinstance(requests, list) and len(requests) == 1 else None
    if isinstance(responses, str):
        responses = [responses]
    if not isinstance(responses, list) or not all(isinstance(text, str) for text in responses):
        raise UserError(
            f"{where}: column 'resps' does not hold the responses to one request; only tasks that "
            f"generate text (output_type generate_until) can be scored"
        )
    target = _gold(where, _value(where, row, "target"))
    if isinstance(target, str):
        target = target.rpartition("####")[2].strip()
        target = boxed_answer(target) or target
    metrics = row.get("metrics")
    names = metrics if isinstance(metrics, list) else []
    values = [row.get(name) for name in names]
    correct = bool(values[0]) if len(responses) == 1 and values and values[0] in (0, 1) else None
    return {"id": _value(where, row, "doc_id"), "answer": target, "responses": responses}, correct


def _verl_dump(where: str, row: Row) -> Translation:
    if "gts" not in row:
        raise UserError(
            f"{where}: column 'gts', the gold answer, is missing: an older verl leaves it out; add "
            f"it, or write columns problem, answer and response"
        )
    verdict = row["acc"] if isinstance(row.get("acc"), int | float) else row.get("score")
    correct = verdict > 0 if isinstance(verdict, int | float) else None
    gold = _gold(where, row["gts"])
    problem, response = (_value(where, row, name) for name in ("input", "output"))
    return {"problem": problem, "answer": gold, "response": response}, correct


def _verl_generation(where: str, row: Row) -> Translation:
    reward, prompt = (_value(where, row, name) for name in ("reward_model", "prompt"))
    gold = reward.get("ground_truth") if isinstance(reward, dict) else None
    if isinstance(prompt, list):
        prompt = "\n".join(
            str(message.get("content") if isinstance(message, dict) else message)
            for message in prompt
        )
    return {
        "problem": prompt,
        "answer": _gold(where, gold),
        "responses": _value(where, row, "responses"),
    }, None


def _value(where: str, row: Row, column: str) -> Any:
    if column not in row:
        raise UserError(f"{where}: column {column!r} is missing; mend the row")
    return row[column]


def _gold(where: str, value: Any) -> Any:
    """Take a list of one for what it holds, and write a number without an exponent."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    try:
        return decimal_text(value) if isinstance(value, float) else value
    except ValueError as error:
        raise UserError(f"{where}: {error}") from None
