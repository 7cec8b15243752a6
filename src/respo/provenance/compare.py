"""Whether files and weights are still those that a result was made from."""

from pathlib import Path
from typing import Any, Literal

from respo.cli import UserError
from respo.files import sha256_of
from respo.provenance.inside import is_other
from respo.provenance.sources import State
from respo.weight_files import INDEX, WEIGHTS, policy_hash, read_sums, weight_files

Told = dict[str, Any]
LARGE = 2_000_000_000  # bytes; more would take longer to read than people like to wait


def source(what: str, path: Path, recorded: Any, found: str | None) -> Told:
    """Compare what a file was with what it is.

    The state is unchanged, changed, missing, `no file` (a pipe lies there) or `no record`.
    """
    state: State | Literal["no record"] = "unchanged" if found == recorded else "changed"
    if recorded is None:
        state = "no record"
    if found is None:
        state = "no file" if is_other(path) and not path.is_dir() else "missing"
    return {
        "what": what,
        "path": str(path),
        "sha256": None if recorded is None else str(recorded),
        "state": state,
    }


def hash_of(path: Path) -> str | None:
    """Return the hash of a file, None where there is none."""
    return sha256_of(path) if path.is_file() else None


def weights(what: str, folder: Path, recorded: Any, any_size: bool = False) -> Told:
    """Compare what weights were with what lies there.

    Weights that are too large to be read for the sake of something else are compared by what
    `SHA256SUMS` beside them lists.

    Args:
        what: a word for them.
        folder: where they lie, in Hugging Face's format.
        recorded: the hash that they had, see `policy_hash`.
        any_size: read them however large they are.

    Returns:
        As `source`; the state may be `listed` too (the list names that hash, the weights were not
        read), or `not compared` (there is no list either).
    """
    try:
        if is_other(folder / INDEX) and not (folder / WEIGHTS).exists():
            return source(what, folder, recorded, None) | {"state": "no file"}
        paths = weight_files(folder)
        if any(map(is_other, paths)):
            return source(what, folder, recorded, None) | {"state": "no file"}
        large = sum(path.stat().st_size for path in paths) > LARGE
        if any_size or not large:
            return source(what, folder, recorded, policy_hash(folder))
    except (UserError, OSError):
        return source(what, folder, recorded, None)
    try:
        listed = read_sums(folder)
        found = policy_hash(folder, lambda path: listed[path.name])
    except (UserError, KeyError):
        return source(what, folder, recorded, recorded) | {"state": "not compared"}
    told = source(what, folder, recorded, found)
    return told | {"state": "listed"} if told["state"] == "unchanged" else told
