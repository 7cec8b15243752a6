"""The verifiers by name. What code and Math-Verify decide is tested elsewhere, here stand-ins."""

import json
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from respo.cli import UserError
from respo.evaluation import verifiers
from respo.evaluation.generations import Generation
from respo.evaluation.score import main
from respo.evaluation.verifiers import Options, _Once, gold_for, open_verifier
from respo.parquet import made_from, read_parquet
from respo.rewards.workers import Pair, Verdict, WorkerError


def generation(answer: str, response: str, problem: str = "p", sample: int = 0) -> Generation:
    return Generation(problem, sample, answer, response, None, None)


def nothing(done: int, total: int) -> None:
    pass


def test_choice() -> None:
    with open_verifier("choice", Options()) as verifier:
        verdicts = verifier.check(
            [
                generation("B", "Answer: (B)"),
                generation("C", r"\boxed{\text{B}}"),
                generation("A", "A good idea."),
            ],
            nothing,
        )
    assert verdicts == [
        Verdict(True, "B", "ok"),
        Verdict(False, "B", "ok"),
        Verdict(False, None, "unparsed"),
    ]
    assert verifier.version == verifier.environment["respo"]
    assert verifier.limits == {}


@pytest.mark.parametrize("answer", ["B", "b", "(B)", "[b]", "B.", "B)", " (b). ", "B:"])
def test_gold_letters(answer: str) -> None:
    gold = gold_for("choice", Options())
    assert gold is not None
    assert gold("p", answer) == "B"


@pytest.mark.parametrize("answer", ["K", "2", "AB", "A or B", "Paris", "ı", "", "()", "A.B", None])
def test_gold_answers_that_are_no_letters(answer: str | None) -> None:
    gold = gold_for("choice", Options())
    assert gold is not None
    with pytest.raises(ValueError, match=r"column 'answer' is .*must hold the letter of the right"):
        gold("p", answer)


def test_other_gold_answers_are_texts() -> None:
    assert gold_for("math_verify", Options()) is gold_for("strict_box", Options()) is None


TESTS = {name: json.dumps({"function": None, "tests": [{"input": name}]}) for name in "abc"}
ANSWERS = {name: sha256(text.encode()).hexdigest() for name, text in TESTS.items()}


class StandIn:
    """Takes the place of `CodePool`: a program is right if its tests name it."""

    sandbox = "stand-in, Python 3"
    seconds, memory_mb = 6.0, 2048
    calls: list[list[Pair]]

    def __init__(self, workers: int | None, *, unsandboxed: bool, **limits: float) -> None:
        type(self).calls, type(self).given = [], (workers, unsandboxed, limits)

    def check(self, pairs: Sequence[Pair], progress) -> list[Verdict]:
        self.calls.append(list(pairs))
        for done in range(1, len(pairs) + 1):
            progress(done, len(pairs))
        return [Verdict(json.loads(t)["tests"][0]["input"] == r, r, "ok") for t, r in pairs]

    def __enter__(self) -> "StandIn":
        return self

    def __exit__(self, *error: object) -> None:
        pass


@pytest.fixture
def problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("respo.rewards.code.CodePool", StandIn)
    path = tmp_path / "problems.parquet"
    write_problems(path, TESTS, ANSWERS)
    return path


def write_problems(path: Path, tests: dict[str, str], answers: dict[str, str]) -> None:
    rows = [
        {"id": name, "prompt": "?", "answer": answers[name], "tests": tests[name]} for name in tests
    ]
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=1)


@pytest.mark.parametrize("group", [1, 2, 100])
def test_code(problems: Path, monkeypatch: pytest.MonkeyPatch, group: int) -> None:
    """Each program gets the tests of its problem, however the rows are grouped."""
    pq.write_table(pq.read_table(problems), problems, row_group_size=group)
    monkeypatch.setattr(verifiers, "PROGRAMS_AT_A_TIME", 2)
    told: list[int] = []
    programs = [("c", "c"), ("a", "b"), ("b", "b"), ("a", "a"), ("a", "a")]
    with open_verifier("code", Options(workers=3, tests=problems, seconds=2.0)) as verifier:
        verdicts = verifier.check(
            [generation(ANSWERS[problem], text) for problem, text in programs],
            lambda done, total: told.append(done),
        )
    assert [v.correct for v in verdicts] == [True, False, True, True, True]
    assert StandIn.given == (3, False, {"seconds": 2.0})
    # Equal ones once, two at a time.
    assert [[text for _, text in call] for call in StandIn.calls] == [["c", "b"], ["b", "a"]]
    assert told == [2, 3, 4, 5]
    assert verifier.environment["sandbox"] == "stand-in, Python 3"
    assert verifier.limits == {"seconds": 6.0, "memory_mb": 2048}


def test_tests_at_a_time_are_bounded(problems: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifiers, "TESTS_AT_A_TIME", 10)
    with open_verifier("code", Options(tests=problems)) as verifier:
        verifier.check([generation(ANSWERS[name], name) for name in "abca"], nothing)
    assert [len(call) for call in StandIn.calls] == [1, 1, 1]


def test_code_from_the_command_line(problems: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, out = problems.with_name("g.jsonl"), problems.with_name("s.parquet")
    rows = [{"id": "a", "answer": ANSWERS["a"], "response": text} for text in ("a", "b")]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(
        sys,
        "argv",
        [
            *("score", "--generations", str(source), "--out", str(out), "--verifier", "code"),
            *("--tests", str(problems), "--unsandboxed"),
        ],
    )
    main()
    table = read_parquet(out)
    assert table["correct"].to_pylist() == [True, False]
    assert "boxed" not in table.column_names
    assert made_from(table)["environment"]["sandbox"] == "stand-in, Python 3"
    assert StandIn.given == (None, True, {})


def test_programs_by_the_ids_of_their_problems(
    problems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without answers the tests are those of the id; an answer that is there decides."""
    source, out = problems.with_name("g.jsonl"), problems.with_name("s.parquet")
    command = ["score", "--generations", str(source), "--out", str(out), "--verifier", "code"]
    monkeypatch.setattr(sys, "argv", [*command, "--tests", str(problems)])
    rows: list[dict[str, str]] = [
        {"problem_id": "b", "response": "b"},
        {"problem_id": "a", "response": "b"},
        {"problem_id": "mine", "response": "c", "answer": ANSWERS["c"]},
    ]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    main()
    table = read_parquet(out)
    assert table["correct"].to_pylist() == [True, False, True]
    assert table["answer"].to_pylist() == [ANSWERS[name] for name in "bac"]
    source.write_text(json.dumps({"id": "x", "response": "b"}))
    with pytest.raises(SystemExit) as caught:
        main()
    assert str(caught.value.code).startswith(
        f"error: {source}: line 1: {problems} has no problem 'x'; write an id of that file into "
    )


def test_code_needs_tests() -> None:
    with pytest.raises(UserError, match=r"--tests: is missing; .*held_out"):
        gold_for("code", Options())
    with (
        pytest.raises(UserError, match=r"--tests: is missing; .*held_out"),
        open_verifier("code", Options()),
    ):
        pass


def test_tests_of_other_problems(problems: Path) -> None:
    with (
        pytest.raises(UserError, match=r"problems\.parquet: has no problem with the answer 'x' of"),
        open_verifier("code", Options(tests=problems)) as verifier,
    ):
        verifier.check([generation("x", "?")], nothing)


def test_tests_that_are_not_those_of_the_answer(problems: Path) -> None:
    write_problems(problems, TESTS | {"b": TESTS["c"]}, ANSWERS)
    with (
        pytest.raises(UserError, match=r"problem 'p': column 'answer' is not the sha256 of column"),
        open_verifier("code", Options(tests=problems)) as verifier,
    ):
        verifier.check([generation(ANSWERS["b"], "?")], nothing)


def test_a_file_of_tests_that_is_no_parquet(tmp_path: Path) -> None:
    """Nobody is told to delete a file of his own."""
    path = tmp_path / "p.jsonl"
    path.write_text("{}")
    for use in (gold_for, lambda *given: open_verifier(*given).__enter__()):
        with pytest.raises(UserError) as caught:
            use("code", Options(tests=path))
        assert str(caught.value).startswith(f"{path}: not a readable Parquet file (")
        assert str(caught.value).endswith(
            "). Give the Parquet file results/STUDY/data/held_out/NAME.parquet, which `snakemake "
            "results/STUDY/data/held_out/NAME.parquet --config study=STUDY` makes; if it is that "
            "file, delete it and start again."
        )


def test_a_file_without_tests(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    pq.write_table(pa.table({"id": ["a"], "answer": ["3"]}), path)
    with (
        pytest.raises(UserError, match=r"p\.parquet: column 'tests' is missing; --tests takes"),
        open_verifier("code", Options(tests=path)),
    ):
        pass
    with (
        pytest.raises(UserError, match=r"none\.parquet: no such file"),
        open_verifier("code", Options(tests=tmp_path / "none.parquet")),
    ):
        pass


def test_no_sandbox_is_the_users_to_mend(problems: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise WorkerError("no sandbox here; install bubblewrap")

    monkeypatch.setattr(StandIn, "check", refuse)
    with (
        pytest.raises(UserError, match="no sandbox here; install bubblewrap"),
        open_verifier("code", Options(tests=problems)) as verifier,
    ):
        verifier.check([generation(ANSWERS["a"], "a")], nothing)


def test_equal_pairs_are_checked_once_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[str] = []

    def check(generations: Sequence[Generation], progress) -> list[Verdict]:
        checked.extend(g.response for g in generations)
        for done in range(1, len(generations) + 1):
            progress(done, len(generations))
        return [Verdict(g.answer == g.response, g.response, "ok") for g in generations]

    told: list[tuple[int, int]] = []
    once = _Once(check)

    def verdicts(responses: str) -> list[bool]:
        batch = [generation("a", response) for response in responses]
        found = once(batch, lambda done, total: told.append((done, total)))
        assert [v.extracted for v in found] == list(responses)
        return [v.correct for v in found]

    assert verdicts("aba") == [True, False, True]
    assert told == [(2, 3), (3, 3)]
    assert verdicts("bca") == [False, False, True]
    assert checked == ["a", "b", "c"]
    # The same texts, cut elsewhere, are another pair.
    cut = once([generation("ab", "c"), generation("a", "bc")], nothing)
    assert [verdict.extracted for verdict in cut] == ["c", "bc"]
    # Bounded: the oldest are forgotten.
    monkeypatch.setattr(verifiers, "REMEMBERED", 2)
    verdicts("def")
    checked.clear()
    verdicts("def")
    assert checked == ["d"]
