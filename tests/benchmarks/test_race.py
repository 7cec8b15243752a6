import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def race(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.race")


def test_contestants_take_turns_after_one_round_to_warm_up(race):
    calls = []

    def run(name, cpu):
        calls.append(name)
        return race.Taken(cpu, 2 * cpu)

    taken = race.race({"a": lambda: run("a", 1), "b": lambda: run("b", 3)}, rounds=2)
    assert calls == ["a", "b"] * 3
    assert taken == {"a": [(1, 2, 1)] * 2, "b": [(3, 6, 1)] * 2}


def test_time_counts_what_was_done(race):
    found = race.timed(lambda: 5)
    assert found.work == 5
    assert found.cpu >= 0
    assert found.wall > 0
    assert race.timed(lambda: None).work == 1


@pytest.mark.parametrize(
    ("unit", "ours", "theirs"),
    # 10 things in 2 s of processor time against 5 in 4 s: four times as fast.
    [("things/s", 5.0, 1.25), ("s", 0.2, 0.8), ("ms", 200.0, 800.0), ("us", 2e5, 8e5)],
)
def test_a_ratio_above_one_says_that_ours_is_ahead(race, unit, ours, theirs):
    row = race.compare("x", unit, [race.Taken(2, 4, 10)], "peer", [race.Taken(4, 4, 5)])
    assert row.ours == [pytest.approx(ours)]
    assert row.theirs == [pytest.approx(theirs)]
    assert row.ratios == [pytest.approx(4)]
    assert row.wall_ratios == [pytest.approx(2)]


def test_a_table_shows_medians_and_the_range_of_the_ratio(race):
    row = race.Row("x", "ms", [1.0, 2.0, 4.0], "peer", [2.0, 2.0, 2.0])
    alone = race.Row("y", "MB", [1234.0])
    once = race.Row("z", "s", [1.0], "peer", [2.0])
    lines = list(race.table([row, alone, once]))
    assert lines[2] == "| x | ms | 2 | peer | 2 | **1.00** (0.50 to 2.00) | - |"
    assert lines[3] == "| y | MB | 1,234 | - | - | - | - |"
    assert lines[4] == "| z | s | 1 | peer | 2 | **2.00** (one round) | - |"


def test_a_missing_peer_is_named_with_the_remedy(race, monkeypatch):
    def rows(quick):
        raise ModuleNotFoundError("No module named 'trl'", name="trl")
        yield

    monkeypatch.setattr("sys.argv", ["x"])
    with pytest.raises(SystemExit, match=r"trl is not installed; `\./run bench`"):
        race.main(rows, "Summary.")
