import pytest

from respo.training.verl.states import TRACKER, latest, state, steps, superfluous, tidy


@pytest.fixture
def folder(tmp_path):
    """States 2 and 4 are whole, 6 is not."""
    for step in (2, 4, 6):
        state(tmp_path, step).mkdir()
        if step < 6:
            (state(tmp_path, step) / "data.pt").touch()
    (tmp_path / TRACKER).write_text("4")
    (tmp_path / "other").mkdir()
    return tmp_path


def test_states_are_found(folder):
    assert steps(folder) == [2, 4, 6]
    assert latest(folder) == 4
    assert steps(folder / "absent") == []
    assert latest(folder / "absent") == 0


def test_half_a_state_is_cleared_away(folder):
    tidy(folder)
    assert steps(folder) == [2, 4]


@pytest.mark.parametrize("text", ["", "-3", "999", "four"])
def test_a_damaged_tracker_names_the_newest_whole_state(folder, text):
    (folder / TRACKER).write_text(text)
    tidy(folder)
    assert (latest(folder), steps(folder)) == (4, [2, 4])


def test_an_emptied_tracker_of_no_whole_state_goes(tmp_path):
    state(tmp_path, 2).mkdir()
    (tmp_path / TRACKER).write_text("")
    tidy(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_no_folder_is_tidy(tmp_path):
    tidy(tmp_path / "absent")


@pytest.mark.parametrize(
    ("keep_last", "wanted", "gone"),
    [(1, [], [1, 2, 3]), (1, [2], [1, 3]), (3, [], [1]), (9, [], []), (1, [1, 2, 3, 4], [])],
)
def test_what_may_go(keep_last, wanted, gone):
    assert superfluous([5, 3, 1, 2, 4], 4, keep_last, wanted) == gone
