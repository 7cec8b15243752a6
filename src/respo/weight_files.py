"""The files that hold a model's weights, in Hugging Face's format, and their one hash."""

import hashlib
from collections.abc import Callable
from pathlib import Path

from respo.cli import UserError
from respo.files import read_json, sha256_of

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"


def weight_files(folder: Path) -> list[Path]:
    """Return the weights file, or the parts that an index names; they need not exist.

    Raises:
        UserError: the index is damaged or names files elsewhere.
    """
    if (folder / INDEX).exists() and not (folder / WEIGHTS).exists():
        index = read_json(folder / INDEX)
        try:
            names = sorted(set(index["weight_map"].values()))
        except (KeyError, TypeError, AttributeError):
            names = []
        if not names:
            raise UserError(f"{folder / INDEX}: weight_map is missing or names no files")
        if odd := [name for name in names if Path(name).name != name]:
            raise UserError(f"{folder / INDEX}: weight_map: {odd[0]!r} is not a file beside it")
        return [folder / name for name in names]
    return [folder / WEIGHTS]


def policy_hash(folder: Path, sha256: Callable[[Path], str] = sha256_of) -> str:
    """SHA-256 of the weights file; of several, the SHA-256 of their hashes in order of name.

    Args:
        folder: holds the weights.
        sha256: hashes one file.

    Raises:
        UserError: the folder has no weights.
    """
    hashes = [sha256(path) for path in weight_files(folder)]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()
