"""What records must look like, and which names in them are names of files of the folder.

A folder may come from anybody: what a record says is read only if it has the kind it should have,
and a name in it never leads out of the folder.
"""

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from respo.provenance.inside import is_inside


def _inside(name: str) -> str:
    if not is_inside(name):
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
