"""Trainer states: everything that continuing needs, safe against being killed at any moment.

A state is a folder ``<update>/`` with ``tensors.safetensors`` and ``state.json``, written under a
temporary name and renamed. The JSON holds a SHA-256 of the tensors and of all else that it says, so
a state that is not whole or was changed is recognised; the one before it is kept for that case.
Nothing is flushed to disk explicitly: a kill does not lose what was written, and what a power cut
loses the hash detects.
"""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

KEEP = 2
# What reading a damaged state may raise; RecursionError comes from JSON that is nested too deeply.
DAMAGE = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    RecursionError,
    SafetensorError,
)


@dataclass(frozen=True)
class State:
    """What is saved: tensors by name, and values that JSON can hold."""

    tensors: dict[str, Tensor]
    values: dict[str, Any]


def save_state(folder: Path, update: int, identity: dict[str, str], state: State) -> None:
    """Write the state after ``update`` and drop all but the newest two.

    Args:
        folder: of the states of a run.
        update: policy updates done.
        identity: hashes of all that the run is made from.
        state: what to save.

    Raises:
        OSError: it cannot be written; ``filename`` is the folder.
    """
    try:
        _save(folder, update, identity, state)
    except OSError as error:
        # Say the folder that the user knows; a write to a full disk names no file at all.
        error.filename = str(folder)
        raise


def _save(folder: Path, update: int, identity: dict[str, str], state: State) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # The lock admits one trainer: whatever is temporary was left behind by a killed one.
    for left_over in folder.glob(".tmp-*"):
        shutil.rmtree(left_over)
    temporary = folder / f".tmp-{update}-{os.getpid()}"
    temporary.mkdir()
    # Views into wider tensors are refused by safetensors.
    tensors = {name: tensor.contiguous() for name, tensor in state.tensors.items()}
    data = safetensors.torch.save(tensors)
    content = {"update": update, "identity": identity, "values": state.values}
    text = json.dumps({**content, "sha256": _hash(data, content)})
    try:
        (temporary / "tensors.safetensors").write_bytes(data)
        (temporary / "state.json").write_text(text, encoding="utf-8")
    except OSError:
        # On a full disk it would be in the way of those who free space.
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    final = folder / str(update)
    if final.exists():
        shutil.rmtree(final)
    temporary.rename(final)
    for old in _newest_first(folder)[KEEP:]:
        shutil.rmtree(old)


def load_state(folder: Path, identity: dict[str, str], needed: Collection[str]) -> State | None:
    """Return the newest whole state that was made from the same inputs, or None.

    States that cannot be used are told on standard error.

    Args:
        folder: of the states of a run.
        identity: as it was saved.
        needed: keys that the values of a whole state have.
    """
    for candidate in _newest_first(folder):
        try:
            content = json.loads((candidate / "state.json").read_text(encoding="utf-8"))
            data = (candidate / "tensors.safetensors").read_bytes()
            if content.pop("sha256") != _hash(data, content):
                raise ValueError("it does not match its hash")
            if missing := sorted(set(needed) - content["values"].keys()):
                raise ValueError(f"value {missing[0]} is missing")
            differing = list(_differing(content["identity"], identity))
            state = State(safetensors.torch.load(data), content["values"])
        except DAMAGE as error:
            print(f"{candidate}: not a whole state ({error}); skipped", file=sys.stderr)
            continue
        if differing:
            print(
                f"{candidate}: made from another {' and '.join(differing)}; not continued",
                file=sys.stderr,
            )
            return None
        return state
    return None


def _hash(data: bytes, content: dict[str, Any]) -> str:
    """SHA-256 of the tensors' file and of the canonical JSON of all else."""
    sha256 = hashlib.sha256(data)
    sha256.update(json.dumps(content, sort_keys=True).encode())
    return sha256.hexdigest()


def _newest_first(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    states = [path for path in folder.iterdir() if path.name.isdecimal()]
    return sorted(states, key=lambda path: int(path.name), reverse=True)


def _differing(found: dict[str, str], expected: dict[str, str]) -> Iterator[str]:
    for key, value in expected.items():
        if found.get(key) != value:
            yield key.removesuffix("_sha256").replace("_", " ")
