"""Trainer states: everything that continuing needs, safe against being killed at any moment.

A state is a folder ``<update>/`` with ``tensors.safetensors`` and ``state.json``, written under a
temporary name and renamed. The JSON holds the SHA-256 of the tensors, so a state that is not whole
is recognised; the one before it is kept for that case. Nothing is flushed to disk explicitly: a
kill does not lose what was written, and what a power cut loses the hash detects.
"""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors.torch
from safetensors import SafetensorError
from torch import Tensor

KEEP = 2


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
    """
    folder.mkdir(parents=True, exist_ok=True)
    # The lock admits one trainer: whatever is temporary was left behind by a killed one.
    for left_over in folder.glob(".tmp-*"):
        shutil.rmtree(left_over)
    temporary = folder / f".tmp-{update}-{os.getpid()}"
    temporary.mkdir()
    data = safetensors.torch.save(state.tensors)
    (temporary / "tensors.safetensors").write_bytes(data)
    text = json.dumps(
        {
            "update": update,
            "identity": identity,
            "tensors_sha256": hashlib.sha256(data).hexdigest(),
            "values": state.values,
        }
    )
    (temporary / "state.json").write_text(text, encoding="utf-8")
    final = folder / str(update)
    if final.exists():
        shutil.rmtree(final)
    temporary.rename(final)
    for old in _newest_first(folder)[KEEP:]:
        shutil.rmtree(old)


def load_state(folder: Path, identity: dict[str, str]) -> State | None:
    """Return the newest whole state that was made from the same inputs, or None.

    States that cannot be used are told on standard error.
    """
    for candidate in _newest_first(folder):
        try:
            header = json.loads((candidate / "state.json").read_text(encoding="utf-8"))
            data = (candidate / "tensors.safetensors").read_bytes()
            if hashlib.sha256(data).hexdigest() != header["tensors_sha256"]:
                raise ValueError("the tensors do not match their hash")
            differing = list(_differing(header["identity"], identity))
            state = State(safetensors.torch.load(data), header["values"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
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


def _newest_first(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    states = [path for path in folder.iterdir() if path.name.isdecimal()]
    return sorted(states, key=lambda path: int(path.name), reverse=True)


def _differing(found: dict[str, str], expected: dict[str, str]) -> Iterator[str]:
    for key, value in expected.items():
        if found.get(key) != value:
            yield key.removesuffix("_sha256").replace("_", " ")
