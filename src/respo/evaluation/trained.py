"""What `train.json` of a run says, as far as evaluation relies on it."""

from pathlib import Path
from typing import Any

from respo.cli import UserError
from respo.files import read_json


def read_train(path: Path) -> dict[str, Any]:
    """Read `train.json`.

    Raises:
        UserError: the file is missing, damaged or of another shape.
    """
    train = read_json(path)
    if not isinstance(train, dict) or not isinstance(train.get("checkpoints"), dict):
        raise UserError(
            f"{path}: checkpoints: is missing or not a map from update to hash; {anew(path)}"
        )
    return train


def checkpoint_hash(path: Path, train: dict[str, Any], update: str) -> str:
    """Return the hash that the weights after an update had when they were written.

    Raises:
        UserError: no checkpoint of this update was written.
    """
    sha256 = train["checkpoints"].get(update)
    if not isinstance(sha256, str):
        known = ", ".join(train["checkpoints"]) or "none"
        raise UserError(
            f"{path}: checkpoints: has no hash for update {update}; there are {known}. Evaluate "
            f"one of these, or {anew(path)}"
        )
    return sha256


def anew(path: Path) -> str:
    """Say how a run is trained again."""
    return f"train the run anew: snakemake --forcerun {path}"
