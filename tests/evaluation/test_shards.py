from pathlib import Path

import pytest

from respo.evaluation import shards
from respo.evaluation.engines import Response
from respo.evaluation.shards import Shards

FIRST = Response("a", 0, "5", 2, False)
SECOND = Response("b", 1, "…\n", 24, True)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "SECONDS", 0.0)


def test_responses_are_kept(tmp_path: Path, at_once: None) -> None:
    kept = Shards(tmp_path / "kept", {"seed": 1})
    assert kept.read() == []
    kept.add([FIRST])
    kept.add([])
    kept.add([SECOND])
    assert len(list((tmp_path / "kept").iterdir())) == 2
    assert Shards(tmp_path / "kept", {"seed": 1}).read() == [FIRST, SECOND]
    kept.remove()
    assert not (tmp_path / "kept").exists()
    kept.remove()


def test_a_file_holds_what_came_within_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(shards.time, "monotonic", lambda: now)
    kept = Shards(tmp_path, {})
    kept.add([FIRST])
    assert list(tmp_path.iterdir()) == []
    now += 59.0
    kept.add([])
    assert list(tmp_path.iterdir()) == []
    now += 1.0
    kept.add([SECOND])
    assert len(list(tmp_path.iterdir())) == 1
    assert kept.read() == [FIRST, SECOND]


@pytest.mark.parametrize("damage", ["cut", "other work", "other columns"])
def test_what_does_not_belong_here_goes(tmp_path: Path, at_once: None, damage: str) -> None:
    kept = Shards(tmp_path, {"seed": 1})
    kept.add([FIRST])
    (path,) = tmp_path.iterdir()
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-20])
    elif damage == "other work":
        Shards(tmp_path, {"seed": 2}).add([FIRST])
        path.unlink()
    else:
        shards.write_parquet(path, shards.read_parquet(path).select(["sample"]), {"seed": 1})
    assert kept.read() == []
    assert list(tmp_path.iterdir()) == []
