import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from respo.evaluation.score import _Progress, _summary, main
from respo.files import sha256_of
from respo.parquet import made_from, read_parquet, write_parquet
from respo.statistics.scores import read_scores

SHARED = Path(os.environ.get("RESPO_SHARED", Path(__file__).parents[3] / "shared"))

ROWS = [
    {"problem_id": "half", "answer": r"\frac{1}{2}", "response": r"so \boxed{0.5}"},
    {"problem_id": "half", "answer": r"\frac{1}{2}", "response": r"so \boxed{\frac{1}{2}}"},
    {"problem_id": "three", "answer": "3", "response": "no idea", "response_tokens": 2},
    {"problem_id": "three", "answer": "3", "response": r"\boxed{9^{9^9}}", "truncated": True},
]


def write(path: Path, rows: list[dict]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def score(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["score", *map(str, arguments)])
    main()


def test_math_verify(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = write(tmp_path / "g.jsonl", ROWS), tmp_path / "new" / "s.parquet"
    score(monkeypatch, "--generations", source, "--out", out, "--timeout", 1, "--workers", 1)
    table = read_parquet(out)
    # Math-Verify's normal form of the extracted 0.5 is the fraction.
    assert table.to_pylist() == [
        {
            "problem_id": problem,
            "sample": sample,
            "correct": correct,
            "extracted": extracted,
            "boxed": boxed,
            "status": status,
            "response_tokens": tokens,
            "truncated": truncated,
            "answer": answer,
        }
        for problem, sample, correct, extracted, boxed, status, tokens, truncated, answer in [
            ("half", 0, True, r"\frac{1}{2}", "0.5", "ok", None, None, r"\frac{1}{2}"),
            ("half", 1, True, r"\frac{1}{2}", r"\frac{1}{2}", "ok", None, None, r"\frac{1}{2}"),
            ("three", 0, False, None, None, "unparsed", 2, None, "3"),
            ("three", 1, False, None, "9^{9^9}", "timeout", None, True, "3"),
        ]
    ]
    assert [str(field.type) for field in table.schema] == [
        "string",
        "int32",
        "bool",
        "string",
        "string",
        "string",
        "int32",
        "bool",
        "string",
    ]
    provenance = made_from(table)
    assert provenance["verifier"]["name"] == "math_verify"
    assert provenance["verifier"]["version"] == provenance["environment"]["math-verify"]
    assert provenance["generations_sha256"] == sha256_of(source)
    assert provenance["limits"] == {"seconds": 1.0, "memory_mb": 2048}
    captured = capsys.readouterr()
    assert captured.out.startswith("4 scored, 2 correct, 1 unparsed, 1 timed out, ")
    assert captured.out.count("\n") == 1
    assert captured.err == ""


def test_strict_box_to_json_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out = write(tmp_path / "g.jsonl", ROWS), tmp_path / "s.jsonl"
    score(monkeypatch, "--generations", source, "--out", out, "--verifier", "strict_box")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["correct"], row["status"], row["extracted"]) for row in rows] == [
        (False, "ok", "0.5"),
        (True, "ok", r"\frac{1}{2}"),
        (False, "unparsed", None),
        (False, "ok", "9^{9^9}"),
    ]
    assert capsys.readouterr().out.startswith("4 scored, 1 correct, 1 unparsed, 0 timed out, ")


def test_provenance_of_the_generations_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = tmp_path / "g.parquet", tmp_path / "s.parquet"
    write_parquet(source, pa.Table.from_pylist(ROWS), {"checkpoint_sha256": "abc"})
    score(monkeypatch, "--generations", source, "--out", out, "--verifier", "strict_box")
    provenance = made_from(read_parquet(out))
    assert provenance["generations"] == {"checkpoint_sha256": "abc"}
    assert provenance["verifier"]["name"] == "strict_box"


# All disagreements with the verdicts published beside the responses: (problem, sample), who is
# right and why.
DISAGREEMENTS = {
    # 70,000 / 7 is 10,000. The gold answer writes it as 10{,}000, the response as 10000; the
    # published verdict took the braces for a difference. Ours (correct) is right.
    ("35", 7): True,
}


@pytest.mark.skipif(not SHARED.exists(), reason="needs the published responses")
def test_real_responses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """400 responses to MATH problems with published verdicts: 399 agree."""
    source, out = SHARED / "data/generations/math_50x8.jsonl", tmp_path / "s.parquet"
    score(monkeypatch, "--generations", source, "--out", out)
    published = {
        (str(problem), sample): verdict
        for problem, line in enumerate(source.read_text(encoding="utf-8").splitlines())
        for sample, verdict in enumerate(json.loads(line)["verdicts"])
    }
    rows = read_parquet(out).to_pylist()
    ours = {(row["problem_id"], row["sample"]): row["correct"] for row in rows}
    assert len(rows) == 400
    assert ours.keys() == published.keys()
    assert {key: ours[key] for key in ours if ours[key] != published[key]} == DISAGREEMENTS
    assert {row["status"] for row in rows} == {"ok"}


GOOD = json.dumps(ROWS[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--generations", "none.jsonl", "--out", "s.parquet"], "none.jsonl: no such file"),
        (["--generations", "meta.parquet", "--out", "s.parquet"], "meta.parquet: metadata 'respo'"),
        (["--generations", "deep.jsonl", "--out", "s.parquet"], "deep.jsonl: line 1 is not JSON"),
        (["--generations", "g.csv", "--out", "s.parquet"], "g.csv: the name must end in"),
        (["--generations", "bad.jsonl", "--out", "s.parquet"], "bad.jsonl: line 2 is not JSON"),
        (["--generations", "g.jsonl", "--out", "s.csv"], "s.csv: the name must end in"),
        (["--generations", "g.jsonl", "--out", "s"], "s: the name must end in"),
        (["--generations", "g.jsonl", "--out", "d.jsonl"], "d.jsonl: is a folder"),
        (["--generations", "g.jsonl", "--out", "./g.jsonl"], "would overwrite the generations"),
        (["--generations", "g.jsonl", "--out", "bad.jsonl/s.parquet"], "bad.jsonl"),
        (["--generations", "g.jsonl", "--out", "/proc/s.parquet"], "/proc"),
    ],
)
def test_bad_input_is_one_message_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list, message: str
) -> None:
    write(tmp_path / "g.jsonl", ROWS)
    (tmp_path / "bad.jsonl").write_text(GOOD + "\n{")
    (tmp_path / "deep.jsonl").write_text("[" * 100_000)
    broken = pa.Table.from_pylist(ROWS).replace_schema_metadata({b"respo": b"{"})
    pq.write_table(broken, tmp_path / "meta.parquet")
    (tmp_path / "d.jsonl").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "respo.evaluation.verifiers.WorkerPool", None
    )  # would fail if it came so far
    before = sorted(tmp_path.iterdir())
    with pytest.raises(SystemExit) as caught:
        score(monkeypatch, *arguments)
    assert message in str(caught.value.code)
    assert "\n" not in str(caught.value.code)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--timeout", "0"),
        ("--timeout", "nan"),
        ("--timeout", "inf"),
        ("--workers", "0"),
        ("--workers", "x"),
        ("--memory-mb", "1"),
        ("--verifier", "magic"),
    ],
)
def test_bad_options(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    option: str,
    value: str,
) -> None:
    with pytest.raises(SystemExit) as caught:
        score(monkeypatch, "--generations", "g.jsonl", "--out", "s.jsonl", option, value)
    assert caught.value.code == 2
    assert f"argument {option}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("verifier", "option", "fitting"),
    [
        ("strict_box", ["--timeout", "3"], "math_verify or code"),
        ("choice", ["--memory-mb", "512"], "math_verify or code"),
        ("math_verify", ["--tests", "none"], "code"),
        ("strict_box", ["--unsandboxed"], "code"),
    ],
)
def test_options_of_other_verifiers(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    verifier: str,
    option: list[str],
    fitting: str,
) -> None:
    files = ("--generations", "g.jsonl", "--out", "s.jsonl")
    with pytest.raises(SystemExit) as caught:
        score(monkeypatch, *files, "--verifier", verifier, *option)
    assert caught.value.code == 2
    assert f"argument {option[0]}: only with --verifier {fitting}\n" in capsys.readouterr().err


def test_majority_of_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The vote counts letters, whatever stands around them and in boxes: B twice, A once."""
    texts = [r"\boxed{\text{(B)}}", "The answer is B.", r"\boxed{A}", "No idea."]
    rows = [{"id": 1, "answer": "(b)", "response": text} for text in texts]
    source, out = write(tmp_path / "g.jsonl", rows), tmp_path / "s.parquet"
    # The pipeline gives --workers to each verifier.
    files = ("--generations", source, "--out", out)
    score(monkeypatch, *files, "--verifier", "choice", "--workers", 2)
    table = read_parquet(out)
    assert table["boxed"].to_pylist() == ["B", "B", "A", None]
    assert table["answer"].to_pylist() == ["B"] * 4
    scores = read_scores(out)
    assert scores.majority_P is not None
    assert (scores.correct_P.tolist(), scores.majority_P.tolist()) == ([2], [True])


def test_a_gold_answer_that_is_no_letter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"id": n, "answer": answer, "response": "B"} for n, answer in enumerate(["A.", "2"])]
    source, out = write(tmp_path / "g.jsonl", rows), tmp_path / "s.parquet"
    with pytest.raises(SystemExit) as caught:
        score(monkeypatch, "--generations", source, "--out", out, "--verifier", "choice")
    assert caught.value.code == (
        f"error: {source}: line 2: column 'answer' is '2'; with --verifier choice it must hold the "
        "letter of the right option, A to J: write that, or choose another verifier"
    )
    assert not out.exists()


def test_missing_math_verify_is_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "math_verify.py").write_text("raise ImportError('No module named math_verify')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    source = write(tmp_path / "g.jsonl", ROWS)
    with pytest.raises(SystemExit) as caught:
        score(monkeypatch, "--generations", source, "--out", tmp_path / "s.parquet")
    assert "pip install math-verify" in str(caught.value.code)
    assert not (tmp_path / "s.parquet").exists()


def test_progress_shows_an_estimate(capsys: pytest.CaptureFixture[str]) -> None:
    progress = _Progress(total=10)
    progress(1, 5)
    assert capsys.readouterr().err == ""  # sooner than five seconds
    progress.start -= 6
    progress.last -= 6
    progress.before = 1
    progress(1, 5)
    # 2 in 6 seconds: the other 8 need 24.
    assert capsys.readouterr().err == "scored 2 of 10, about 24 s left\n"
    progress(3, 5)
    assert capsys.readouterr().err == ""


def test_summary_names_failures_if_there_are_any() -> None:
    count = Counter(correct=1, ok=1, failed=1)
    assert _summary(2, count, 2.04) == (
        "2 scored, 1 correct, 0 unparsed, 0 timed out, 1 failed, 2.0 s"
    )


def test_verdicts_in_the_file_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A dump of verl, whose own score is wrong about the second response."""
    rows = [
        {"input": "1+1=", "output": rf"\boxed{{{n}}}", "gts": "2", "score": 1.0, "step": 1}
        for n in (2, 3)
    ]
    source, out = write(tmp_path / "1.jsonl", rows), tmp_path / "s.jsonl"
    score(monkeypatch, "--generations", source, "--out", out, "--verifier", "strict_box")
    printed = capsys.readouterr().out
    assert printed.startswith("2 scored, 1 correct, ")
    assert printed.endswith("; 1 of 2 verdicts in the file differ\n")


def test_batches_give_the_same_scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By number and by length of responses; order kept."""
    rows = [
        {"id": n % 3, "sample": n // 3, "answer": "1", "response": rf"{'x' * n}\boxed{{{n % 2}}}"}
        for n in range(20)
    ]
    source = write(tmp_path / "g.jsonl", rows)

    def scores(name: str) -> list[dict]:
        out = tmp_path / name
        score(monkeypatch, "--generations", source, "--out", out, "--verifier", "strict_box")
        if out.suffix == ".parquet":
            return read_parquet(out).to_pylist()
        return [json.loads(line) for line in out.read_text().splitlines()]

    whole = scores("whole.parquet")
    assert [row["correct"] for row in whole] == [n % 2 == 1 for n in range(20)]
    assert [(row["problem_id"], row["sample"]) for row in whole] == [
        (str(n % 3), n // 3) for n in range(20)
    ]
    monkeypatch.setattr("respo.evaluation.score.BATCH_RESPONSES", 3)
    assert scores("batches.parquet") == whole
    assert pq.read_metadata(tmp_path / "batches.parquet").num_row_groups == 7
    monkeypatch.setattr("respo.evaluation.score.BATCH_CHARACTERS", 30)
    assert scores("short.parquet") == scores("short.jsonl") == whole


def test_a_killed_job_leaves_no_scores(tmp_path: Path) -> None:
    source, out = write(tmp_path / "g.jsonl", ROWS), tmp_path / "s.parquet"
    code = (
        "import os, sys\n"
        "from respo.evaluation import score\n"
        "score.BATCH_RESPONSES = 1\n"
        "rows = score._rows\n"
        "def dies_at_the_third(batch, *rest):\n"
        "    if batch[0].problem_id == 'three': os.kill(os.getpid(), 9)\n"
        "    return rows(batch, *rest)\n"
        "score._rows = dies_at_the_third\n"
        f"sys.argv = ['score', '--generations', {str(source)!r}, '--out', {str(out)!r},"
        " '--verifier', 'strict_box']\n"
        "score.main()"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True).returncode == -9
    assert not out.exists()


def test_help_documents_the_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        score(monkeypatch, "--help")
    text = capsys.readouterr().out
    for name in ("problem_id", "prompt", "responses", "response_tokens", "truncated", "sample"):
        assert name in text
    assert "{columns}" not in text


def test_strict_box_imports_nothing_heavy(tmp_path: Path) -> None:
    """The pipeline starts this command hundreds of times."""
    source = write(tmp_path / "g.jsonl", ROWS)
    code = (
        "import sys, runpy;"
        f"sys.argv = ['s', '--generations', {str(source)!r}, '--out',"
        f" {str(tmp_path / 's.parquet')!r}, '--verifier', 'strict_box'];"
        "runpy.run_module('respo.evaluation.score', run_name='__main__');"
        "heavy = {'torch', 'sympy', 'math_verify', 'pydantic', 'scipy', 'transformers'};"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    assert pq.read_metadata(tmp_path / "s.parquet").num_rows == 4
