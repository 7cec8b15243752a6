"""How far a cell is, from the files and logs that its jobs leave; written here by hand."""

import os
import time
from pathlib import Path

import pytest

from respo.evaluation.generate import _Progress as Generating
from respo.evaluation.score import _Progress as Scoring
from respo.status import evaluations, logs
from respo.status.evaluations import Evaluation
from respo.status.traces import Progress

CELL = "m/grpo/N8/seed1/128/easy"


def look(folder: Path) -> Evaluation:
    found = evaluations.look(CELL, folder / "cell", lambda job: folder / f"{job}.log")
    assert found
    return found


def write(path: Path, text: str = "", age: float = 0.0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (time.time() - age,) * 2)


def log(folder: Path, job: str) -> Path:
    return folder / f"eval/{CELL}.{job}.log"


def test_nothing_there(tmp_path: Path) -> None:
    job = f"eval/{CELL}.generate"
    assert look(tmp_path) == Evaluation(CELL, "generating", job, Progress("waiting"))


def test_a_cell_that_is_there(tmp_path: Path) -> None:
    write(tmp_path / "cell" / "cell.json")
    assert evaluations.look(CELL, tmp_path / "cell", lambda job: tmp_path / job) is None


def test_generating(tmp_path: Path) -> None:
    write(log(tmp_path, "generate"))
    assert look(tmp_path).progress == Progress("running")
    write(log(tmp_path, "generate"), "1/8 responses  1 tokens/s  70 s left\n2/8 responses\n")
    assert look(tmp_path).progress == Progress("running", 2, 8)
    write(log(tmp_path, "generate"), "2/8 responses  1,200 tokens/s  60 s left\nINFO more\n")
    assert look(tmp_path).progress == Progress("running", 2, 8, 60.0)


def test_scoring_and_counting(tmp_path: Path) -> None:
    write(log(tmp_path, "generate"), "8/8 responses  1 tokens/s  0 s left\n", age=20)
    write(tmp_path / "cell" / "generations.parquet", age=10)
    found = look(tmp_path)
    assert (found.doing, found.progress) == ("scoring", Progress("waiting"))
    write(log(tmp_path, "score"), "scored 6 of 8, about 3 s left\n")
    assert look(tmp_path).progress == Progress("running", 6, 8, 3.0)
    write(tmp_path / "cell" / "scores.parquet", age=5)
    assert look(tmp_path).doing == "counting"


def test_a_log_of_an_earlier_time_tells_nothing(tmp_path: Path) -> None:
    """Generated anew, after the scoring of other responses failed."""
    write(log(tmp_path, "score"), "error: g.parquet: is damaged\n", age=20)
    write(tmp_path / "cell" / "generations.parquet", age=10)
    assert look(tmp_path).progress == Progress("waiting")


def test_failed(tmp_path: Path) -> None:
    write(log(tmp_path, "generate"), "3/8 responses\nerror: m: no memory\n")
    assert look(tmp_path).progress == Progress("failed", 3, 8, message="error: m: no memory")


@pytest.mark.parametrize(
    ("text", "age"),
    [
        ("3/8 responses\ninterrupted; the next start continues\n", 0),
        ("3/8 responses\n", 400),  # killed, or it hangs
    ],
)
def test_stopped(tmp_path: Path, text: str, age: float) -> None:
    """It continues where responses are kept, and begins anew where there are none."""
    write(log(tmp_path, "generate"), text, age)
    assert look(tmp_path).progress == Progress("waiting", 3, 8)
    write(tmp_path / "cell" / ".shards" / "a" / "1.parquet", age=age)
    os.utime(tmp_path / "cell" / ".shards" / "a", (time.time() - age,) * 2)
    assert look(tmp_path).progress == Progress("stopped", 3, 8)


def test_kept_responses_are_a_sign_of_life(tmp_path: Path) -> None:
    write(log(tmp_path, "generate"), "3/8 responses\n", age=400)
    write(tmp_path / "cell" / ".shards" / "a" / "1.parquet")
    assert look(tmp_path).progress.state == "running"


def test_progress_is_read_as_the_jobs_write_it(capsys: pytest.CaptureFixture[str]) -> None:
    generating = Generating(8, 2)
    generating.last -= 1000
    generating.report([])
    assert logs.told(capsys.readouterr().err.splitlines()) == (2, 8, None)
    scoring = Scoring(8, interval=0.0)
    scoring(4, 8)
    told = logs.told(capsys.readouterr().err.splitlines())
    assert told is not None
    assert told[:2] == (4, 8)
