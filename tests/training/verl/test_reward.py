"""The reward as verl calls it: by name, with what it knows of the response."""

import asyncio
import json
import subprocess
import sys
import time

import pytest

from respo.rewards import training
from respo.rewards.training import Checkers
from respo.training.verl.reward import compute_score

MATH_VERIFY = {"verifier": "math_verify"}


def score(response, answer="33", **given):
    return compute_score(
        data_source="respo",
        solution_str=response,
        ground_truth=answer,
        extra_info={"index": 0},
        **given,
    )


@pytest.mark.parametrize(
    ("response", "strict_box", "math_verify"),
    [
        (r"so \boxed{33}", 1.0, 1.0),
        (r"so \boxed{033}", -1.0, 1.0),
        ("33", -1.0, 1.0),
        ("32", -1.0, -1.0),
        ("no idea", -1.0, -1.0),
    ],
)
def test_the_two_rules(response, strict_box, math_verify):
    assert score(response) == {"score": strict_box, "acc": float(strict_box > 0)}
    assert score(response, **MATH_VERIFY) == {"score": math_verify, "acc": float(math_verify > 0)}


def test_verdicts_are_those_of_the_evaluation(tmp_path):
    cases = [
        ("033", r"\boxed{33}"),
        (r"\frac{1}{2}", r"\boxed{\dfrac12}"),
        ("(3, 4)", r"\boxed{(4, 3)}"),
        ("33", r"so \boxed{33} ... no, \boxed{34}"),
        ("x=5", r"\boxed{5}"),
        ("33", r"\boxed{3"),
        ("9^{9^9}", r"\boxed{3}"),
    ]
    generations = [
        {"problem": str(at), "answer": answer, "response": response}
        for at, (answer, response) in enumerate(cases)
    ]
    (tmp_path / "generations.jsonl").write_text("\n".join(map(json.dumps, generations)))
    options = ["--generations", "generations.jsonl", "--out", "scores.jsonl", "--timeout", "2"]
    subprocess.run(
        [sys.executable, "-m", "respo.evaluation.score", *options], cwd=tmp_path, check=True
    )
    found = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    checkers = Checkers(2, seconds=2.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "shared_checkers", lambda: checkers)
        rewards = [score(response, answer, **MATH_VERIFY) for answer, response in cases]
    checkers.close()
    assert [row["correct"] for row in found] == [reward["acc"] == 1.0 for reward in rewards]
    assert [row["status"] for row in found][-2:] == ["unparsed", "timeout"]
    assert sum(row["correct"] for row in found) == 3


def test_the_event_loop_goes_on_while_an_answer_hangs(monkeypatch):
    """verl 0.9.1 calls the reward in the threads of its event loop (`reward_manager/dapo.py`)."""
    checkers = Checkers(2, seconds=2.0)
    monkeypatch.setattr(training, "shared_checkers", lambda: checkers)
    for pool in checkers._pools:
        pool.check([("1", "1")])

    async def all_at_once():
        loop = asyncio.get_running_loop()

        def start(response, answer):
            return loop.run_in_executor(None, lambda: score(response, answer, **MATH_VERIFY))

        hanging = start(r"\boxed{9^{9^9}}", "3")
        others = await asyncio.gather(*[start(str(n), "7") for n in range(20)])
        assert not hanging.done()
        return others, await hanging

    began = time.monotonic()
    others, late = asyncio.run(all_at_once())
    assert [other["acc"] for other in others] == [float(n == 7) for n in range(20)]
    assert late == {"score": -1.0, "acc": 0.0}
    assert time.monotonic() - began < 10
    checkers.close()
