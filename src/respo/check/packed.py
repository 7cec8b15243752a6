"""Are the files of a pack those that its list, `MANIFEST.json`, names?

A table or figure may have been drawn anew where the pack was unpacked. Its record then tells
another code revision or Python. That is no damage if what it is the record of has the same bytes.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from respo.check.expected import is_left_out
from respo.check.folder import Folder
from respo.cli import UserError
from respo.provenance.inside import MANIFEST
from respo.provenance.sources import SUFFIX, read_sources, record_of

UNPACK = "unpack again"


def check_manifest(folder: Folder, names: list[str]) -> None:
    """Compare all files with the list that a pack brings.

    Args:
        folder: where the findings go, too; without a list nothing is compared.
        names: of the files that are there.
    """
    files = folder.manifest.get("files", {})
    for name in files:
        if name in folder.found.bad:
            continue
        if not folder.is_file(name):
            folder.found.missing(name, None, f"{MANIFEST} lists it: {UNPACK}")
        elif not _listed(folder, name):
            _other(folder, name)
    if files:
        for name in names:
            made_later = is_left_out(name, folder.left_out)  # such as the page
            if name not in files and name != MANIFEST and not made_later:
                folder.found.foreign(name, f"{MANIFEST} does not list it")


def _listed(folder: Folder, name: str) -> bool:
    """Tell whether a file is the one that was packed."""
    return bool(folder.sha256(name) == folder.manifest["files"][name]["sha256"])


def _other(folder: Folder, name: str) -> None:
    """Tell of a file that is not the one that was packed: damaged, unless it was drawn anew."""
    name_of_record = record_of(Path(name)).as_posix()
    record = _record(folder, name_of_record)
    if record is None:
        folder.found.damaged(name, f"is not the file that {MANIFEST} lists; {UNPACK}", None)
        return
    revision = record["environment"].get("code", "unknown")
    if name == name_of_record and _same_products(folder, record, name):
        text = f"by revision {revision}; same bytes as packed, but for the record itself"
        folder.found.redrawn(name, text)
    elif name == name_of_record or record["products"].get(name) == folder.sha256(name):
        text = f"was drawn anew here, by revision {revision}, and differs from what was packed"
        folder.found.damaged(name, f"{text}; {UNPACK} to have that", None)
    else:
        folder.found.damaged(name, f"is not the file that {MANIFEST} lists; {UNPACK}", None)


def _record(folder: Folder, name: str) -> Mapping[str, Any] | None:
    """Return what a record says that is not the one that was packed; None if there is none."""
    if not name.endswith(SUFFIX) or name not in folder.manifest["files"] or not folder.has(name):
        return None
    try:
        record = read_sources(folder.path / name)
    except UserError:
        return None
    return None if _listed(folder, name) else record


def _same_products(folder: Folder, record: Mapping[str, Any], name: str) -> bool:
    """Tell whether a record is that of all products that were packed, and of no others."""
    packed = {
        product: entry["sha256"]
        for product, entry in folder.manifest["files"].items()
        if product != name and record_of(Path(product)).as_posix() == name
    }
    return bool(packed == record["products"])
