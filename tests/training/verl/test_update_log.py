import json

import pytest

from respo.cli import UserError
from respo.training.verl.update_log import FILE, append, log_folder, read


def add(folder, *places):
    for rollout_batch, mini_batch in places:
        append(folder, {"rollout_batch": rollout_batch, "mini_batch": mini_batch})


def updates(folder, staleness=2):
    return [row["update"] for row in read(folder, staleness)]


def test_updates_are_counted_over_rollout_batches(tmp_path):
    add(tmp_path, (1, 1), (1, 2), (2, 1))
    assert read(tmp_path, 2)[2] == {"update": 3, "rollout_batch": 2, "mini_batch": 1}
    assert updates(tmp_path) == [1, 2, 3]


def test_no_log_has_no_updates(tmp_path):
    assert read(tmp_path / "absent", 2) == []


def test_what_is_made_again_counts(tmp_path):
    add(tmp_path, (1, 1), (1, 2), (2, 1), (2, 2), (3, 1))
    append(tmp_path, {"rollout_batch": 2, "mini_batch": 1, "score": 7.0})  # resumed from step 1
    rows = read(tmp_path, 2)
    assert [row["update"] for row in rows] == [1, 2, 3]
    assert rows[2]["score"] == 7.0


def test_a_line_nested_without_end_is_left_out(tmp_path):
    (tmp_path / "updates.jsonl").write_text("[" * 100_000 + "\n")
    assert read(tmp_path, 2) == []


def test_half_a_line_is_left_out(tmp_path):
    add(tmp_path, (1, 1), (1, 2))
    with (tmp_path / FILE).open("a") as file:
        file.write('{"rollout_batch": 2, "mi')
    assert updates(tmp_path) == [1, 2]
    add(tmp_path, (2, 1))
    assert updates(tmp_path) == [1, 2, 3]


def test_numbers_that_json_lacks_become_null(tmp_path):
    append(tmp_path / "new", {"score": float("nan"), "grad_norm": float("inf"), "tokens": 3})
    row = json.loads((tmp_path / "new" / FILE).read_text())
    assert row == {"score": None, "grad_norm": None, "tokens": 3}


def test_a_missing_update_is_told(tmp_path):
    add(tmp_path, (1, 1), (2, 1))
    with pytest.raises(UserError, match=r"updates.jsonl: update 2 is missing before line 2"):
        read(tmp_path, 2)


@pytest.mark.parametrize("line", ["[1]", "{}", '{"rollout_batch": 1, "mini_batch": 3}'])
def test_another_runs_log_is_refused(tmp_path, line):
    (tmp_path / FILE).write_text(line + "\n")
    with pytest.raises(UserError, match="line 1 is not an update of a run with N = 2"):
        read(tmp_path, 2)


def test_the_folder_comes_from_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("RESPO_RUN_METRICS", raising=False)
    assert log_folder() is None
    monkeypatch.setenv("RESPO_RUN_METRICS", str(tmp_path))
    assert log_folder() == tmp_path
