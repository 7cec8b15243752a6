"""What a table, figure or page was made from: a record beside it, `ID.sources.json`.

The products themselves carry 12 digits over their sources. The record lists the sources with the
hash of each, so that it can be told which of them has changed since, and the versions that made it.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from respo.cli import UserError
from respo.config import ResolvedStudy
from respo.environment import environment
from respo.files import read_json, sha256_of, write_record
from respo.parquet import made_from, read_parquet
from respo.provenance.inside import is_file, is_inside, is_other

SUFFIX = ".sources.json"
CONFIG = Path(__file__).parents[3] / "config"
# A source of this name lies below `config`, all others below the study's folder.
REFERENCE = "reference/"
METRICS = "metrics.parquet"
TIMES = ("seconds", "tokens_per_second")  # columns of the metrics
State = Literal["unchanged", "changed", "missing", "no file"]


def source_sha256(path: Path) -> str:
    """Hash a source: its bytes, but of the metrics of a run all that it says beside times.

    A run that was killed and continued, or trained again, gives the same tables, bit for bit.

    Raises:
        UserError: it is missing or damaged.
    """
    if path.name != METRICS:
        return sha256_of(path)
    table = read_parquet(path)
    sha256 = hashlib.sha256(json.dumps(made_from(table), sort_keys=True).encode())
    for name in table.column_names:
        if name not in TIMES:
            sha256.update(name.encode())
            sha256.update(table[name].to_numpy().tobytes())
    return sha256.hexdigest()


def digest(files: Mapping[str, str]) -> str:
    """Return 12 hex digits over names and hashes of files, whatever their order."""
    lines = "".join(f"{name} {sha256}\n" for name, sha256 in sorted(files.items()))
    return hashlib.sha256(lines.encode()).hexdigest()[:12]


def record_of(product: Path) -> Path:
    """Return the record of a file such as `tables/respo/table1.contrasts.csv`."""
    return product.with_name(product.name.partition(".")[0] + SUFFIX)


def shown_in_report(study: ResolvedStudy) -> list[str]:
    """Return the files below a results folder that `report.html` shows."""
    tables = [f"tables/{name}.html" for name in study.study.tables]
    return [*tables, *(f"figures/{name}.png" for name in study.study.figures), "explore.html"]


def write_sources(
    study_folder: Path,
    study: str,
    products: Iterable[Path],
    digits: str,
    files: Mapping[str, str],
    *packages: str,
) -> Path:
    """Write the record of what has just been made.

    Args:
        study_folder: `results/STUDY`.
        study: its name.
        products: the files that were made, of one table, figure or page.
        digits: those that they carry.
        files: hash by name of each source, see `resolve`.
        packages: whose versions are told.

    Returns:
        The record.
    """
    made = {path.relative_to(study_folder).as_posix(): sha256_of(path) for path in products}
    path = record_of(study_folder / min(made))
    record = {
        "study": study,
        "made_from": digits,
        "environment": environment(*packages),
        "products": made,
        "sources": dict(sorted(files.items())),
    }
    write_record(path, record)
    return path


def read_sources(path: Path) -> dict[str, Any]:
    """Read a record.

    Raises:
        UserError: it is missing, no regular file, damaged, of another shape, or names files outside
            of its folder.
    """
    is_file(path)
    record = read_json(path)
    kinds = {"study": str, "made_from": str, "environment": dict, "products": dict, "sources": dict}
    for key, kind in kinds.items():
        value = record.get(key) if isinstance(record, dict) else None
        files = value if key in ("products", "sources") and isinstance(value, dict) else {}
        if outside := [name for name in files if not is_inside(name)]:
            raise UserError(
                f"{path}: {key}: {outside[0]!r} is no name of a file of this folder. Delete it and "
                "what it is the record of, and make that anew."
            )
        if not isinstance(value, kind) or not all(isinstance(one, str) for one in files.values()):
            raise UserError(
                f"{path}: {key}: is missing or of another kind. Delete it and what it "
                "is the record of, and make that anew."
            )
    return record


def resolve(study_folder: Path, name: str) -> Path:
    """Return where a source lies now, as far as it does.

    The papers' numbers lie beside the results where these were packed.
    """
    packed = study_folder / name
    return packed if packed.exists() or not name.startswith(REFERENCE) else CONFIG / name


def state(path: Path, sha256: str) -> State:
    """Tell whether a file is still what it was; a damaged one is not, and a pipe is no file."""
    if is_other(path):
        return "no file"
    if not path.is_file():
        return "missing"
    try:
        return "unchanged" if source_sha256(path) == sha256 else "changed"
    except UserError:
        return "changed"
