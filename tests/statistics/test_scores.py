"""Reading scores, and the command that prints what they say."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from respo.statistics.__main__ import main, summary
from respo.statistics.scores import read_scores

ROWS = [
    {"problem_id": "b", "sample": 0, "correct": True, "status": "ok"},
    {"problem_id": "a", "sample": 0, "correct": False, "status": "unparsed"},
    {"problem_id": "b", "sample": 1, "correct": False, "status": "timeout"},
    {"problem_id": "a", "sample": 1, "correct": False, "status": "ok"},
]


def write_jsonl(path: Path, rows: list) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_parquet(path: Path, rows: list[dict]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("write", [write_jsonl, write_parquet])
def test_counts(tmp_path: Path, write: Callable) -> None:
    path = write(tmp_path / ("s.jsonl" if write is write_jsonl else "s.parquet"), ROWS)
    scores = read_scores(path)
    assert scores.problem_id == ["b", "a"]
    assert scores.correct_P.tolist() == [1, 0]
    assert scores.samples_P.tolist() == [2, 2]
    assert scores.status == {"ok": 2, "unparsed": 1, "timeout": 1, "failed": 0}
    assert scores.responses == 4
    assert scores.truncated is None
    assert scores.mean_response_tokens is None
    assert scores.made_from == {}


def test_lengths(tmp_path: Path) -> None:
    rows = [row | {"response_tokens": 10 * i, "truncated": i > 2} for i, row in enumerate(ROWS)]
    scores = read_scores(write_parquet(tmp_path / "s.parquet", rows))
    assert scores.truncated == 1
    assert scores.mean_response_tokens == 15.0


def test_summary(tmp_path: Path) -> None:
    """Two problems, 1/2 and 0: mean 0.25, error sqrt(1/16 / 2) = 0.177."""
    text = summary(read_scores(write_jsonl(tmp_path / "s.jsonl", ROWS)), None, seed=0)
    lines = [line.split() for line in text.splitlines()]
    assert ["problems", "2"] in lines
    assert ["responses", "4"] in lines
    assert ["unparsed", "1"] in lines
    assert ["timeout", "1"] in lines
    name, value, _, error = lines[-2]
    assert (name, value) == ("pass@1", "0.2500")
    assert float(error) == pytest.approx(0.177, rel=0.03)
    assert lines[-1] == ["pass@2", "0.5000"]


def test_summary_of_unequal_samples(tmp_path: Path) -> None:
    text = summary(read_scores(write_jsonl(tmp_path / "s.jsonl", ROWS[:3])), None, seed=0)
    assert "1 to 2" in text
    assert "pass@2" not in text


GOOD = json.dumps(ROWS[0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no responses"),
        (GOOD + "\n{", "line 2 is not JSON"),
        ("\ufeff" + GOOD, "line 1 is not JSON .*BOM"),
        ("[1]", "line 1 is not a JSON object"),
        ('{"sample": 0}', "line 1: column 'problem_id' is missing"),
        (GOOD + "\n" + GOOD, "sample 0 of problem 'b' stands there twice"),
        (GOOD.replace("true", "null"), "'correct' is empty in row 1"),
        (GOOD.replace("true", "1"), "'correct' must hold true or false"),
        (GOOD + "\n" + GOOD.replace("true", '"x"'), "values of several kinds"),
    ],
)
def test_bad_lines(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as caught:
        read_scores(path)
    assert str(path) in str(caught.value)


def test_bad_bytes(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"s\.jsonl: line 1 is not JSON"):
        read_scores(tmp_path / "s.jsonl")


def test_bad_parquet(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    path.write_text("no Parquet")
    with pytest.raises(ValueError, match=r"s\.parquet: not a readable Parquet file"):
        read_scores(path)
    write_parquet(path, [{"x": 1}])
    with pytest.raises(ValueError, match="column 'problem_id' is missing"):
        read_scores(path)


@pytest.mark.parametrize(
    ("name", "k", "message"),
    [("s.jsonl", "3", "pass@3 needs"), ("none.jsonl", "1", "No such file"), (".", "1", "error: ")],
)
def test_command_fails_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, k: str, message: str
) -> None:
    write_jsonl(tmp_path / "s.jsonl", ROWS)
    monkeypatch.setattr(sys, "argv", ["x", "--scores", str(tmp_path / name), "--k", k])
    with pytest.raises(SystemExit) as caught:
        main()
    assert message in str(caught.value.code)
    assert "\n" not in str(caught.value.code)


def test_command(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "s.jsonl", ROWS)
    done = subprocess.run(
        [sys.executable, "-m", "respo.statistics", "--scores", path, "--k", "2"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.endswith("pass@2      0.5000\n")
    assert done.stderr == ""
