"""Rows and initial weights: where they are from, with revisions and hashes."""

from pathlib import Path
from typing import Any

from respo.cli import UserError
from respo.config.yaml import read_yaml
from respo.files import read_json, sha256_of
from respo.parquet import parquet_made_from
from respo.provenance.inside import is_file, is_other
from respo.provenance.shapes import number, texts
from respo.provenance.sources import state

# Keys of a data configuration that say where its files are.
FILES = ("hub", "revision", "files", "path")


def rows(path: Path) -> dict[str, Any]:
    """Tell where the rows of a training set or benchmark are from.

    Args:
        path: `data/SIDE/NAME.parquet`; it need not lie there any more, nor its configuration.

    Returns:
        `path`, `sha256` of the file, `origin` in words, and as far as they are known `version`,
        `commit`, `files` (hash by name), counts of rows, and `configuration`.
    """
    told: dict[str, Any] = {"path": str(path), "sha256": None, "origin": "is not there"}
    config = path.with_suffix(".yaml")
    configuration = read_yaml(config) if is_file(config) else {}
    if configuration:
        told["configuration"] = configuration
        told["origin"] = _origin(configuration)
    if not path.is_file():
        if is_other(path):
            told["origin"] = "is no regular file"
        return told
    told["sha256"] = sha256_of(path)
    made_from = parquet_made_from(path)
    told |= {key: made_from[key] for key in ("version", "files") if key in made_from}
    if not configuration:
        told["origin"] = "unknown: its configuration is not beside it"
    elif (recorded := made_from.get("config_sha256")) is not None:
        told["configuration_state"] = state(config, recorded)
    return told


def _origin(configuration: dict[str, Any]) -> str:
    parts = configuration.get("parts")
    if isinstance(parts, list):
        return "; ".join(_origin(part) for part in parts if isinstance(part, dict))
    if configuration.get("hub"):
        return f"{configuration['hub']} on the hub at {configuration.get('revision')}"
    if configuration.get("path"):
        return f"file {configuration['path']}"
    source = configuration.get("source", "?")
    rest = {k: v for k, v in configuration.items() if k not in ("source", "version", *FILES)}
    return f"generated ({source}: {', '.join(f'{k} {v}' for k, v in rest.items())})"


def initial(folder: Path) -> dict[str, Any]:
    """Tell where the initial weights of a model are from.

    Args:
        folder: `initial/MODEL`, with `initial.json` and `config.yaml`, as far as they are there.
    """
    record = folder / "initial.json"
    told: dict[str, Any] = {"path": str(record), "origin": "is not there"}
    config = folder / "config.yaml"
    configuration = read_yaml(config) if is_file(config) else {}
    checkpoint = configuration.get("checkpoint")
    if isinstance(checkpoint, dict):
        told["origin"] = (
            f"{checkpoint['hub']} on the hub at {checkpoint.get('revision')}"
            if checkpoint.get("hub")
            else f"folder {checkpoint.get('path')}"
        )
    elif configuration:
        told["origin"] = "supervised training from random weights (warm start)"
    if not is_file(record):
        return told
    content = read_json(record)
    if not isinstance(content, dict):
        raise UserError(f"{record}: holds no record of weights. Delete it and make it anew.")
    names = ("weights_sha256", "data_sha256", "revision", "steps", "loss", "device")
    told |= {key: content[key] for key in names if key in content}
    told["seconds"] = number(content.get("seconds"))
    told["environment"] = texts(content.get("versions"))
    if (recorded := content.get("config_sha256")) is not None:
        told["configuration_state"] = state(config, recorded)
    return told
