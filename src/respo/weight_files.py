"""The files of a model in Hugging Face's format: the one hash of its weights, and that of each.

A checkpoint of this project has a list `SHA256SUMS` of all its files, which `sha256sum -c` reads.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from respo.cli import UserError
from respo.files import read_json, sha256_of

WEIGHTS, INDEX = "model.safetensors", "model.safetensors.index.json"
SUMS = "SHA256SUMS"


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
        if not names or not all(isinstance(name, str) for name in names):
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


def sums_text(hashes: Mapping[str, str]) -> str:
    """Return the text of `SHA256SUMS` for hashes by name of file."""
    return "".join(f"{hashes[name]}  {name}\n" for name in sorted(hashes))


def write_sums(folder: Path, sha256: Callable[[Path], str] = sha256_of) -> None:
    """Write `SHA256SUMS` into a folder that is being made."""
    paths = [path for path in folder.iterdir() if path.is_file() and path.name != SUMS]
    text = sums_text({path.name: sha256(path) for path in paths})
    (folder / SUMS).write_text(text, encoding="utf-8")


def read_sums(folder: Path) -> dict[str, str]:
    """Return the hashes that `SHA256SUMS` lists by name of file; empty if there is no list.

    Raises:
        UserError: the list is damaged.
    """
    path = folder / SUMS
    if not path.is_file():
        return {}
    lines = path.read_bytes().decode("utf-8", "replace").splitlines()
    found = {name: sha256 for sha256, _, name in (line.partition("  ") for line in lines)}
    if not found or any(
        not re.fullmatch("[0-9a-f]{64}", sha256) or not name or Path(name).name != name
        for name, sha256 in found.items()
    ):
        raise UserError(f"{path}: is damaged: not lines of a SHA-256 and a name of a file")
    return found


def check_sums(folder: Path, weights: bool = False) -> None:
    """Check that the files of a checkpoint are those that its list names.

    Nothing is checked where there is no list: the folder is somebody else's.

    Args:
        folder: the checkpoint.
        weights: check the weights too, which takes a while; default: those who read them compare
            `policy_hash`.

    Raises:
        UserError: a file is missing or has changed.
    """
    heavy = {path.name for path in weight_files(folder)}
    for name, sha256 in read_sums(folder).items():
        if (weights or name not in heavy) and sha256_of(folder / name) != sha256:
            raise UserError(
                f"{folder / name}: was changed or damaged after it was written: its hash is not "
                f"that in {SUMS}"
            )
