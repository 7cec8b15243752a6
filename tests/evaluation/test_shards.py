from pathlib import Path

import pyarrow.parquet as pq
import pytest

from respo.evaluation import shards
from respo.evaluation.engines import Response
from respo.evaluation.shards import Shards

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


def test_responses_are_kept(tmp_path: Path, at_once: None) -> None:
    kept, there = opened(tmp_path / "kept", seed=1)
    assert there == []
    kept.add([FIRST])
    kept.add([])
    kept.add([SECOND])
    assert len(list((tmp_path / "kept").iterdir())) == 2
    assert opened(tmp_path / "kept", seed=1)[1] == [FIRST, SECOND]


def test_a_file_holds_what_came_within_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(shards.time, "monotonic", lambda: now)
    kept, _ = opened(tmp_path)
    kept.add([FIRST])
    assert list(tmp_path.iterdir()) == []
    now += 59.0
    kept.add([])
    assert list(tmp_path.iterdir()) == []
    now += 1.0
    kept.add([SECOND])
    assert len(list(tmp_path.iterdir())) == 1
    assert opened(tmp_path)[1] == [FIRST, SECOND]


@pytest.mark.parametrize("damage", ["cut", "other work", "other columns", "no provenance"])
def test_what_does_not_belong_here_goes(tmp_path: Path, at_once: None, damage: str) -> None:
    opened(tmp_path, seed=1)[0].add([FIRST])
    (path,) = tmp_path.iterdir()
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-20])
    elif damage == "other work":
        opened(tmp_path, seed=2)[0].add([FIRST])
    elif damage == "other columns":
        shards.write_parquet(path, pq.read_table(path).select(["sample"]), {"seed": 1})
    else:
        pq.write_table(pq.read_table(path).replace_schema_metadata({b"respo": b"["}), path)
    assert opened(tmp_path, seed=1)[1] == []
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_wanted_today_is_kept(tmp_path: Path, at_once: None) -> None:
    opened(tmp_path / "kept")[0].add([FIRST, SECOND])
    kept, there = opened(tmp_path / "kept", samples=1)
    assert there == [FIRST]
    (tmp_path / "out").write_bytes(b"")
    kept.finish(tmp_path / "out")
    assert len(list((tmp_path / "kept").iterdir())) == 2
    kept = Shards(tmp_path / "kept", {}, {"b": "2="})
    assert list(kept.read(2)) == [SECOND]
