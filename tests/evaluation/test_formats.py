"""Files of lm-evaluation-harness and verl.

The rows have the fields that lm_eval/evaluator.py and loggers/evaluation_tracker.py
(lm-evaluation-harness 0.4.9), verl/trainer/ppo/ray_trainer.py and main_generation_server.py
(verl 0.9.1) write.
"""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from respo.cli import UserError
from respo.evaluation.generations import Generations


def jsonl(folder: Path, *rows: dict[str, object]) -> Path:
    path = folder / "samples_task_2026-01-01T00-00-00.000000.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def harness(doc_id: int, target: object, *responses: object, **changes: object) -> dict:
    return {
        "doc_id": doc_id,
        "doc": {"question": "How many?", "answer": target},
        "target": target,
        "arguments": {"gen_args_0": {"arg_0": "Question: How many?", "arg_1": {"until": ["Q"]}}},
        "resps": [list(responses)],
        "filtered_resps": ["7"],
        "filter": "strict-match",
        "metrics": ["exact_match"],
        "doc_hash": "a",
        "prompt_hash": "b",
        "target_hash": "c",
        "exact_match": 0.0,
        **changes,
    }


def verl(text: str, output: str, **changes: object) -> dict:
    return {
        "input": f"system\nYou are helpful.\nuser\n{text}\nassistant\n",
        "output": output,
        "gts": "7",
        "score": -1.0,
        "step": 20,
        "reward": -1.0,
        **changes,
    }


def test_harness_one_row_per_document_and_filter(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path,
        harness(0, "4+3=<<4+3=7>>7\n#### 7", "It is 7.", exact_match=1.0),
        harness(1, "8", "Eight.", "8", "nine", exact_match=1.0),
        harness(0, "4+3=<<4+3=7>>7\n#### 7", "It is 7.", filter="flexible-extract"),
        harness(1, "8", "Eight.", "8", "nine", filter="flexible-extract"),
        harness(2, "Halve it: $\\boxed{\\frac{1}{2}}$.", "1/2", exact_match=0),
        harness(3, "9", "9", metrics=["bleu"], bleu=0.3),
    )
    assert [
        (g.problem_id, g.sample, g.answer, g.response, g.claimed) for g in Generations(path)
    ] == [
        ("0", 0, "7", "It is 7.", True),
        # The metric of repeated requests is of all of them.
        ("1", 0, "8", "Eight.", None),
        ("1", 1, "8", "8", None),
        ("1", 2, "8", "nine", None),
        ("2", 0, "\\frac{1}{2}", "1/2", False),
        ("3", 0, "9", "9", None),
    ]


def test_harness_without_lists_in_lists(tmp_path: Path) -> None:
    path = jsonl(tmp_path, harness(0, "7", resps=["It is 7."]))
    assert [g.response for g in Generations(path)] == ["It is 7."]


@pytest.mark.parametrize("column", ["doc_id", "target", "resps"])
def test_harness_a_later_row_lacks_a_column(tmp_path: Path, column: str) -> None:
    row = harness(1, "7", "It is 7.")
    del row[column]
    with pytest.raises(UserError, match=f"line 2: column '{column}' is missing; mend the row"):
        list(Generations(jsonl(tmp_path, harness(0, "7", "7"), row)))


def test_harness_filters_from_the_second_row_on(tmp_path: Path) -> None:
    row = harness(0, "7", "7")
    del row["filter"]
    assert len(list(Generations(jsonl(tmp_path, row, row | {"doc_id": 1})))) == 2
    with pytest.raises(UserError, match="line 2: column 'filter' is in some rows"):
        list(Generations(jsonl(tmp_path, row, harness(1, "7", "7"))))


@pytest.mark.parametrize("column", ["input", "output"])
def test_verl_dump_a_later_row_lacks_a_column(tmp_path: Path, column: str) -> None:
    row = verl("How many?", "7")
    del row[column]
    with pytest.raises(UserError, match=f"line 2: column '{column}' is missing; mend the row"):
        list(Generations(jsonl(tmp_path, verl("Who?", "8"), row)))


@pytest.mark.parametrize(
    "resps",
    [
        [[["-1.5", "False"]], [["-0.5", "True"]]],  # multiple_choice
        [[["-3.0", "False"]]],  # loglikelihood
        [["-12.5"], ["-13.5"]],
        [],
        "text",
    ],
)
def test_harness_without_responses(tmp_path: Path, resps: object) -> None:
    path = jsonl(tmp_path, harness(0, "7", resps=resps))
    with pytest.raises(UserError, match=r"line 1: column 'resps' does not hold the responses"):
        list(Generations(path))


def test_verl_dump(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path,
        verl("How many?", "Let me see.\n\\boxed{7}", score=1.0),
        verl("How many?", "8"),
        verl("And now?", "9", gts=9, score=0.5, acc=False),
        # A length penalty takes all of the reward; `acc` says that the answer is right.
        verl("And now?", "9", gts=9, score=0.0, acc=True),
        verl("Who?", "?", gts="x", score=None),
    )
    assert [
        (g.problem_id, g.sample, g.answer, g.response, g.claimed) for g in Generations(path)
    ] == [
        ("0", 0, "7", "Let me see.\n\\boxed{7}", True),
        ("0", 1, "7", "8", False),
        ("1", 0, "9", "9", False),
        ("1", 1, "9", "9", True),
        ("2", 0, "x", "?", None),
    ]


def test_verl_dump_without_gold_answers(tmp_path: Path) -> None:
    row = verl("How many?", "7")
    del row["gts"]
    with pytest.raises(UserError, match="line 1: column 'gts', the gold answer, is missing"):
        list(Generations(jsonl(tmp_path, row)))
    with pytest.raises(UserError, match="line 1: column 'answer' is empty"):
        list(Generations(jsonl(tmp_path, verl("How many?", "7", gts=None))))


def test_verl_generation(tmp_path: Path) -> None:
    path = tmp_path / "out.parquet"
    prompt = [{"role": "user", "content": "How many?"}]
    table = {
        "data_source": ["math"] * 2,
        "prompt": [prompt, [{"role": "system", "content": "Be brief."}, *prompt]],
        "reward_model": [{"style": "rule", "ground_truth": "7"}] * 2,
        "responses": [["7", "8"], ["9"]],
    }
    pq.write_table(pa.table(table), path)
    assert [
        (g.problem_id, g.sample, g.answer, g.response, g.claimed) for g in Generations(path)
    ] == [
        ("0", 0, "7", "7", None),
        ("0", 1, "7", "8", None),
        ("1", 0, "7", "9", None),
    ]
    table["reward_model"] = [{"style": "rule"}] * 2
    pq.write_table(pa.table(table), path)
    with pytest.raises(UserError, match="row 1: column 'answer' is empty"):
        list(Generations(path))


def test_our_own_columns_come_first(tmp_path: Path) -> None:
    row = {"doc_id": 1, "target": "x", "resps": [], "id": "a", "answer": "7", "response": "8"}
    (generation,) = Generations(jsonl(tmp_path, row))
    assert (generation.problem_id, generation.answer, generation.claimed) == ("a", "7", None)


def test_gold_answers_that_are_numbers_or_lists_of_one(tmp_path: Path) -> None:
    golds: list[object] = [7.0, 0.25, 1e-7, ["7"], [7.5], [7], True, [["7"]], ["7", "8"], "NaN"]
    values = ["7", "0.25", "0.0000001", "7", "7.5", "7", *[None] * 3, "NaN"]
    for gold, expected in zip(golds, values, strict=True):
        for row in (harness(0, gold, "7"), verl("How many?", "7", gts=gold)):
            generations = Generations(jsonl(tmp_path, row))
            if expected is None:
                with pytest.raises(UserError, match="column 'answer' must hold text, not"):
                    list(generations)
            else:
                assert [g.answer for g in generations] == [expected]


def test_verl_dump_beside_keys_of_a_reward_function(tmp_path: Path) -> None:
    """Its dictionary's keys become columns of the dump, whatever their names are."""
    path = jsonl(tmp_path, verl("How many?", "7", answer="x", pred="7", score=1.0))
    (generation,) = Generations(path)
    assert (generation.problem_id, generation.answer, generation.claimed) == ("0", "7", True)
    row = verl("How many?", "7", answer="x")
    del row["score"]
    assert [g.claimed for g in Generations(jsonl(tmp_path, row))] == [None]


@pytest.mark.parametrize("answer", [123456789012345678901.0, float("nan")])
def test_a_gold_number_that_is_not_exact(tmp_path: Path, answer: float) -> None:
    with pytest.raises(UserError, match="line 1: the answer "):
        list(Generations(jsonl(tmp_path, harness(0, answer, "7"))))
