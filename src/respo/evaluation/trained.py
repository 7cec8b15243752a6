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


def run_made_from(train: dict[str, Any]) -> dict[str, Any]:
    """Return the hashes of what a run was made from, and the environments that it was made in.

    An environment is told once, in the order of the first update made in it: how often a run was
    continued, and when, makes no difference to its results.
    """
    hashes: dict[str, Any] = {
        key: train[key] for key in ("data_sha256", "initial_sha256") if key in train
    }
    return {**hashes, "environments": environments(train)}


def environments(train: dict[str, Any]) -> list[dict[str, str]]:
    """Return versions, machine and device of the starts of a run, each that differs once.

    A start that the next one did not go on from has made nothing of the result.
    """
    starts = train.get("starts") or []
    made = [
        start
        for start, after in zip(starts, [*starts, {}][1:], strict=True)
        if start.get("update") != after.get("update")
    ]
    # A run of version 0.1.0 tells of its last start only.
    told = [_environment(start) for start in made or [train]]
    return [one for place, one in enumerate(told) if one and one not in told[:place]]


def _environment(start: dict[str, Any]) -> dict[str, str]:
    device = {"device": start["device"]} if start.get("device") else {}
    return {**(start.get("versions") or {}), **device}


def anew(path: Path) -> str:
    """Say how a run is trained again."""
    return f"train the run anew: snakemake --forcerun {path}"
