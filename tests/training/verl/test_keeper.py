"""Which states are kept, merged and deleted while a run is trained; nothing is merged here."""

import pytest

from respo.cli import UserError
from respo.files import write_json
from respo.training.verl import keeper, states
from respo.training.verl.keeper import Keeper
from respo.training.verl.merge import merged, record
from respo.training.verl.options import Paths


class Unmerging(Keeper):
    """Writes down what it would merge."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.begun = []

    def _begin(self, update):
        self.begun.append(update)


def save(folder, *steps):
    for step in steps:
        state = states.state(folder, step)
        state.mkdir(parents=True)
        (state / states.LAST_FILE).touch()
        (folder / states.TRACKER).write_text(str(step))


def have_merged(run, update):
    merged(run, update).mkdir(parents=True)
    write_json(record(run, update), {"weights_sha256": f"hash of {update}"})


@pytest.fixture
def make(tmp_path, verl_run, monkeypatch):
    """Return a function that makes a keeper; N = 8, checkpoints 256, 512, 768 and 1024."""
    monkeypatch.setattr(keeper, "POLL_SECONDS", 0.0)
    config, _ = verl_run()
    paths = Paths(run=tmp_path, weights=tmp_path / "weights")
    return lambda keep_last=1: Unmerging(paths, config, keep_last)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "verl" / "checkpoints"


def test_the_newest_are_kept_and_what_is_to_be_merged(make, folder, tmp_path):
    save(folder, 10, 32, 40, 64, 70, 80, 90)
    states.state(folder, 100).mkdir()  # being written
    have_merged(tmp_path, 256)
    found = make(keep_last=2)
    found.poll()
    assert states.steps(folder) == [64, 80, 90, 100]
    assert found.begun == [512]
    have_merged(tmp_path, 512)
    found.poll()
    assert states.steps(folder) == [80, 90, 100]


def test_nothing_goes_while_the_tracker_is_being_written(make, folder):
    save(folder, 10, 20, 30)
    (folder / states.TRACKER).write_text("")
    make().poll()
    assert states.steps(folder) == [10, 20, 30]


def test_a_state_is_merged_once_it_is_whole(make, folder):
    found = make()
    found.poll()
    states.state(folder, 32).mkdir(parents=True)
    found.poll()
    assert found.begun == []
    (folder / states.TRACKER).write_text("32")
    found.poll()
    assert found.begun == [256]


def test_what_cannot_be_merged_any_more_is_told(make, folder, tmp_path):
    save(folder, 64, 70)
    found = make()
    found.check(200)
    with pytest.raises(UserError, match="checkpoint 256 is missing, and so is the state"):
        found.check(560)
    have_merged(tmp_path, 256)
    found.check(560)
    assert found.unmerged() == [512, 768, 1024]


def test_a_record_without_its_checkpoint_is_none(make, tmp_path):
    have_merged(tmp_path, 256)
    have_merged(tmp_path, 512)
    merged(tmp_path, 256).rmdir()
    record(tmp_path, 512).write_text("{")
    assert make().unmerged() == [256, 512, 768, 1024]


def test_a_disk_that_fails_stops_nothing(make, monkeypatch, capsys):
    def fail(folder):
        raise OSError(5, "Input/output error", str(folder))

    monkeypatch.setattr(states, "steps", fail)
    found = make()
    found.poll()
    found.poll()
    assert capsys.readouterr().err.count("Input/output error") == 1
