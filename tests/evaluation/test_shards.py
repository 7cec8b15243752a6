import os
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from respo.evaluation import shards
from respo.evaluation.engines import Response
from respo.evaluation.shards import Shards
from respo.parquet import write_parquet

FIRST = Response("a", 0, "5", 2, False)
SECOND = Response("b", 1, "…\n", 24, True)
PROMPTS = {"a": "1=", "b": "2="}


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SECONDS", 0.0)


def opened(folder: Path, samples: int = 2, **made_from: object) -> tuple[Shards, list[Response]]:
    """Shards of these two problems, and the responses that they have."""
    kept = Shards(folder, made_from, PROMPTS)
    return kept, list(kept.read(samples))


def files(root: Path) -> list[Path]:
    return list(root.glob("*/*"))


def write_output(path: Path, **made_from: object) -> None:
    row = {**FIRST._asdict(), "prompt": PROMPTS[FIRST.problem_id]}
    write_parquet(path, pa.Table.from_pylist([row], shards.SCHEMA), made_from)


def test_responses_are_kept(tmp_path: Path, at_once: None) -> None:
    kept, there = opened(tmp_path / "kept", seed=1)
    assert there == []
    kept.add([FIRST])
    kept.add([])
    kept.add([SECOND])
    assert len(files(tmp_path / "kept")) == 2
    assert opened(tmp_path / "kept", seed=1)[1] == [FIRST, SECOND]


def test_a_file_holds_what_came_within_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(shards.time, "monotonic", lambda: now)
    kept, _ = opened(tmp_path)
    kept.add([FIRST])
    assert files(tmp_path) == []
    now += 59.0
    kept.add([])
    assert files(tmp_path) == []
    now += 1.0
    kept.add([SECOND])
    assert len(files(tmp_path)) == 1
    assert opened(tmp_path)[1] == [FIRST, SECOND]


@pytest.mark.parametrize("damage", ["cut", "other columns", "no provenance"])
def test_what_is_damaged_goes(tmp_path: Path, at_once: None, damage: str) -> None:
    opened(tmp_path, seed=1)[0].add([FIRST])
    (path,) = files(tmp_path)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-20])
    elif damage == "other columns":
        shards.write_parquet(path, pq.read_table(path).select(["sample"]), {"seed": 1})
    else:
        pq.write_table(pq.read_table(path).replace_schema_metadata({b"respo": b"["}), path)
    assert opened(tmp_path, seed=1)[1] == []
    assert files(tmp_path) == []


def test_what_is_made_otherwise_is_neither_taken_nor_deleted(tmp_path: Path, at_once: None) -> None:
    opened(tmp_path, seed=1)[0].add([FIRST])
    kept, there = opened(tmp_path, seed=2)
    assert there == []
    kept.add([SECOND])
    assert len(kept.others()) == 1
    # A file that somebody has put into another folder is still of its own work.
    (path,) = opened(tmp_path, seed=1)[0].folder.iterdir()
    shutil.copy(path, kept.folder)
    assert opened(tmp_path, seed=2)[1] == [SECOND]
    assert opened(tmp_path, seed=1)[1] == [FIRST]


def test_old_folders_go_but_for_the_latest_two(tmp_path: Path, at_once: None) -> None:
    for days in (5, 4, 3, 2, 0):
        kept, _ = opened(tmp_path, days=days)
        kept.add([FIRST])
        then = time.time() - 86400 * days
        os.utime(kept.folder, (then, then))
    kept, _ = opened(tmp_path, days="now")
    kept.add([FIRST])
    write_output(tmp_path / "out")
    assert kept.finish(tmp_path / "out") == 3
    left = [opened(tmp_path, days=days)[1] for days in (5, 4, 3, 2, 0)]
    assert left == [[], [], [], [FIRST], [FIRST]]
    # One that somebody may be writing to stays, however many there are.
    for seed in range(4):
        opened(tmp_path, seed=seed)[0].add([FIRST])
    assert kept.finish(tmp_path / "out") == 1
    assert len(kept.others()) == 5


def test_an_output_goes_to_its_own_work(tmp_path: Path, at_once: None) -> None:
    write_output(tmp_path / "out", seed=1)
    kept, _ = opened(tmp_path / "kept", seed=2)
    kept.adopt(tmp_path / "out")
    assert list(kept.read(2)) == []
    assert opened(tmp_path / "kept", seed=1)[1] == [FIRST]
    (tmp_path / "out").write_bytes(b"damaged")
    kept.adopt(tmp_path / "out")
    assert list(kept.read(2)) == []


def test_what_is_not_wanted_today_is_kept(tmp_path: Path, at_once: None) -> None:
    opened(tmp_path / "kept")[0].add([FIRST, SECOND])
    kept, there = opened(tmp_path / "kept", samples=1)
    assert there == [FIRST]
    (tmp_path / "out").write_bytes(b"")
    kept.finish(tmp_path / "out")
    assert len(files(tmp_path / "kept")) == 2
    kept = Shards(tmp_path / "kept", {}, {"b": "2="})
    assert list(kept.read(2)) == [SECOND]
