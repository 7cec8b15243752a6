import math

import pytest
import torch

from respo.cli import UserError
from respo.training.local.metrics import METRICS, branches_table, metrics_table
from respo.training.verl import update_log
from respo.training.verl.results import branches, metrics_rows, note_start, read_starts


def row(step, mini_batch, ended, seconds=1.0, **changes):
    kinds = ("responses", "coefficient_mass", "tokens")
    sums = {kind: [[float(i)] * 10, [2.0] * 10] for i, kind in enumerate(kinds)}
    values = {"tokens": 100, "score": 0.5, "update_seconds": seconds, "ended": ended}
    return {"rollout_batch": step, "mini_batch": mini_batch, "branches": sums, **values, **changes}


def read(folder, *rows, staleness=2):
    for each in rows:
        update_log.append(folder, each)
    return update_log.read(folder, staleness)


def test_seconds_are_of_an_update_and_its_share_of_sampling(tmp_path):
    # Started at 100; sampled until 106, updates of 1 and 3 seconds; sampled until 118, 1 and 1.
    rows = read(tmp_path, row(1, 1, 107), row(1, 2, 110, 3), row(2, 1, 119), row(2, 2, 120))
    found = metrics_rows(rows, [100.0])
    assert [each["seconds"] for each in found] == [1 + 3, 3 + 3, 1 + 4, 1 + 4]
    assert [each["tokens_per_second"] for each in found] == [25, pytest.approx(100 / 6), 20, 20]
    assert sum(each["seconds"] for each in found) == 120 - 100


def test_the_time_between_two_starts_is_nobodys(tmp_path):
    # Killed at 130 in the middle of batch 2, which is made again after a start at 1000.
    rows = read(
        tmp_path,
        *(row(1, 1, 107), row(1, 2, 110, 3), row(2, 1, 119)),
        *(row(2, 1, 1011, score=-1.0), row(2, 2, 1012, score=None)),
    )
    found = metrics_rows(rows, [100.0, 1000.0, 2000.0])
    assert [each["seconds"] for each in found] == [4, 6, 6, 6]
    assert [each["score"] for each in found[:3]] == [0.5, 0.5, -1.0]
    assert math.isnan(found[3]["score"])


def test_clocks_that_disagree_make_no_negative_time(tmp_path):
    rows = read(tmp_path, row(1, 1, 101.5), row(1, 2, 102))
    assert [each["seconds"] for each in metrics_rows(rows, [100.2])] == [1, 1]


def test_the_tables_are_those_of_the_local_trainer(tmp_path):
    rows = read(tmp_path, row(1, 1, 107), row(1, 2, 110), row(2, 1, 119), row(2, 2, 120))
    found = metrics_rows(rows, [100.0])
    table = metrics_table(found)
    assert table.schema.names == list(METRICS)
    assert table["update"].to_pylist() == [1, 2, 3, 4]
    assert table["rollout_batch"].to_pylist() == [0, 0, 1, 1]
    assert all(map(math.isnan, table["dropped_groups"].to_pylist()))
    sums = branches(rows)
    assert sums.shape == (4, 3, 2, 10)
    by_branch = branches_table(found, sums)
    assert by_branch["rollout_batch"].to_pylist() == [0] * 40 + [1] * 40
    assert by_branch["responses"].to_pylist() == ([0] * 10 + [2] * 10) * 4
    assert by_branch["coefficient_mass"].to_pylist() == ([1.0] * 10 + [2.0] * 10) * 4
    assert branches([]).shape == (0, 3, 2, 10)
    assert branches(rows).dtype == torch.float64


def test_starts_are_noted(tmp_path):
    path = tmp_path / "verl" / "starts.jsonl"
    note_start(path, {"update": 0, "device": "d"})
    note_start(path, {"update": 4, "device": "e"})
    (first, second), starts = read_starts(path)
    assert first <= second
    assert starts == [{"update": 0, "device": "d"}, {"update": 4, "device": "e"}]
    path.write_text("1.5\n")  # of version 0.1.0
    assert read_starts(path) == ([1.5], [{}])
    path.write_text("1.0\nx\n")
    with pytest.raises(UserError, match="the times of the run's starts cannot be read"):
        read_starts(path)


def test_a_log_is_cut_where_a_state_is(tmp_path):
    rows = read(tmp_path, row(1, 1, 1), row(1, 2, 2), row(2, 1, 3), row(2, 2, 4))
    update_log.cut(tmp_path, 2, 2)
    assert update_log.read(tmp_path, 2) == rows[:2]
    with pytest.raises(UserError, match="has 2 updates, and the state that training would"):
        update_log.cut(tmp_path, 2, 4)
    update_log.cut(tmp_path / "absent", 2, 0)
