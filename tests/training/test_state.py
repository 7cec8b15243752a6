import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from respo.training.local.state import State, load_state, save_state

IDENTITY = {"config_sha256": "c", "data_sha256": "d", "initial_sha256": "i"}


def state(update: int) -> State:
    return State({"weights": torch.full((3,), update / 3)}, {"update": update})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """States after updates 9 and 10; an older one is gone."""
    for update in (8, 9, 10):
        save_state(tmp_path / "state", update, IDENTITY, state(update))
    return tmp_path / "state"


def test_newest_comes_back_bit_for_bit(folder: Path) -> None:
    loaded = load_state(folder, IDENTITY, ["update"])
    assert loaded is not None
    assert loaded.values == {"update": 10}
    assert torch.equal(loaded.tensors["weights"], state(10).tensors["weights"])
    assert sorted(path.name for path in folder.iterdir()) == ["10", "9"]


def test_a_view_is_saved_as_what_it_shows(tmp_path: Path) -> None:
    whole = torch.arange(6.0).view(2, 3)
    save_state(tmp_path, 1, IDENTITY, State({"part": whole[:, :2]}, {}))
    loaded = load_state(tmp_path, IDENTITY, [])
    assert loaded is not None
    assert loaded.tensors["part"].tolist() == [[0, 1], [3, 4]]


def test_none_without_states(tmp_path: Path) -> None:
    assert load_state(tmp_path / "state", IDENTITY, []) is None


def cut_tensors(newest: Path) -> None:
    path = newest / "tensors.safetensors"
    path.write_bytes(path.read_bytes()[:-5])


def flip_a_bit(newest: Path) -> None:
    path = newest / "tensors.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(bytes(data))


def cut_json(newest: Path) -> None:
    path = newest / "state.json"
    path.write_text(path.read_text()[:-5])


def other_json(newest: Path) -> None:
    (newest / "state.json").write_text("[1]")


def change_a_digit(newest: Path) -> None:
    path = newest / "state.json"
    path.write_text(path.read_text().replace('"values": {"update": 10', '"values": {"update": 18'))


def no_values(newest: Path) -> None:
    path = newest / "state.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"values": {}}))


def values_of_another_version(newest: Path) -> None:
    save_state(newest.parent, 10, IDENTITY, State({}, {"step": 10}))


def deep_json(newest: Path) -> None:
    (newest / "state.json").write_text("[" * 100_000)


def no_json(newest: Path) -> None:
    (newest / "state.json").unlink()


@pytest.mark.parametrize(
    "damage",
    [
        cut_tensors,
        flip_a_bit,
        cut_json,
        other_json,
        change_a_digit,
        no_values,
        values_of_another_version,
        deep_json,
        no_json,
    ],
)
def test_a_damaged_state_falls_back(
    folder: Path, damage: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    damage(folder / "10")
    loaded = load_state(folder, IDENTITY, ["update"])
    assert loaded is not None
    assert loaded.values == {"update": 9}
    assert f"{folder / '10'}: not a whole state" in capsys.readouterr().err


def test_a_damaged_state_can_be_written_again(folder: Path) -> None:
    cut_tensors(folder / "10")
    save_state(folder, 10, IDENTITY, state(10))
    loaded = load_state(folder, IDENTITY, ["update"])
    assert loaded is not None
    assert loaded.values == {"update": 10}


@pytest.mark.parametrize(
    ("key", "name"),
    [("config_sha256", "config"), ("data_sha256", "data"), ("initial_sha256", "initial")],
)
def test_other_inputs_are_not_continued(
    folder: Path, key: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert load_state(folder, IDENTITY | {key: "other"}, []) is None
    assert f"made from another {name}; not continued" in capsys.readouterr().err


def test_what_a_killed_trainer_left_is_ignored_and_cleared(folder: Path) -> None:
    (folder / ".tmp-11-1").mkdir()
    assert load_state(folder, IDENTITY, ["update"]) is not None
    save_state(folder, 11, IDENTITY, state(11))
    assert sorted(path.name for path in folder.iterdir()) == ["10", "11"]


def test_a_full_disk_is_told_with_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device")  # as write(2) does: without a name

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left") as raised:
        save_state(folder, 11, IDENTITY, state(11))
    assert raised.value.filename == str(folder)
    assert load_state(folder, IDENTITY, ["update"]) is not None
