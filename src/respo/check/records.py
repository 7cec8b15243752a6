"""What records must look like, and which names in them are names of files of the folder.

A folder may come from anybody: what a record says is read only if it has the kind it should have,
and a name in it never leads out of the folder.
"""

import os
import stat
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError


def _inside(name: str) -> str:
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts or "\0" in name or parts.as_posix() != name:
        raise ValueError(f"{name!r} is no name of a file of this folder")
    return name


FileName = Annotated[str, AfterValidator(_inside)]


class Record(BaseModel):
    """What is not named here may be anything: it is compared, and goes nowhere."""

    model_config = ConfigDict(extra="allow", strict=True)


class Initial(Record):
    """`initial.json`."""

    weights_sha256: str | None = None


class Train(Record):
    """`train.json`."""

    outputs: dict[str, str] | None = None
    checkpoints: dict[str, str] | None = None


class Cell(Record):
    """`cell.json`."""

    made_from: dict[str, Any] | None = None


class Sources(Record):
    """`ID.sources.json`."""

    environment: dict[str, Any] = {}
    products: dict[FileName, str] = {}
    sources: dict[FileName, str] = {}


class Listed(Record):
    """A file in a manifest."""

    sha256: str


class Manifest(Record):
    """`MANIFEST.json`."""

    files: dict[FileName, Listed]
    left_out: list[str] = []


KINDS: dict[str, type[Record]] = {
    "initial.json": Initial,
    "train.json": Train,
    "cell.json": Cell,
    "MANIFEST.json": Manifest,
}


def wrong_shape(name: str, record: object) -> str | None:
    """Tell what is not as it should be in a record, told by its name; None if all is.

    Args:
        name: of the file.
        record: what stands in it.
    """
    kind = KINDS.get(Path(name).name, Record)
    if name.endswith(".sources.json"):
        kind = Sources
    if not isinstance(record, dict):
        return "is no record of keys and values"
    try:
        kind.model_validate(record)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        keys = ".".join(str(key) for key in problem["loc"] if key != "[key]")
        text = problem["msg"].removeprefix("Value error, ")
        return f"{keys}: {text[0].lower() + text[1:]}"
    return None


def wrong_file(root: Path, path: Path) -> str | None:
    """Tell why what lies under a name is no file of a folder; None if it is one, or not there.

    Pipes and devices would be waited for, and a link may lead to any file of this machine.

    Args:
        root: the folder, without links.
        path: below it.
    """
    if not os.path.lexists(path):
        return None
    if leads_out(root, path):
        return "leads out of the folder, by a link; put the file itself here"
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "is a link to nothing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None if stat.S_ISREG(mode) else "is no regular file"


def leads_out(root: Path, path: Path) -> bool:
    """Tell whether a path leads out of a folder, given without links, by a link."""
    return not Path(os.path.realpath(path)).is_relative_to(root)
