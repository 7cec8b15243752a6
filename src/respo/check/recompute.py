"""Do cells and tables say what comes out of what they were made from?"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from respo.check.expected import cells
from respo.check.findings import without
from respo.check.folder import Folder
from respo.cli import UserError
from respo.config import Run
from respo.environment import code_revision
from respo.evaluation.cell import summarize
from respo.files import SEAL
from respo.provenance.sources import METRICS, REFERENCE, record_of, source_sha256
from respo.reporting.results import Results
from respo.reporting.table import make
from respo.statistics.scores import read_scores

# What another processor or version of NumPy may change.
LAST_DIGITS = 1e-9
STUDY = "study.yaml"
REPORT = "report.html"
REPORT_TEXT = (
    "only its end was looked at: an older version made it, or report.sources.json, which has its "
    "hash, is lost; what it shows was compared where it is from"
)
# What benchmarks/synthetic.py does not compute as evaluation does.
MADE_UP = ("standard_error", "majority")


def check_cells(folder: Folder) -> int:
    """Sum up the scores again and compare with the cells; return how many were compared."""
    return sum(
        _cell(folder, run, cell)
        for run in folder.study.evaluated()
        for cell in cells(folder.study, run)
    )


def _cell(folder: Folder, run: Run, cell: str) -> bool:
    name = f"{cell}/cell.json"
    found = folder.json(name)
    if found is None:
        return False
    # Its seal is that of its values. Tables know its bytes, and would be blamed for another layout.
    written = f"{json.dumps(found, indent=2)}\n"
    if SEAL in found and (folder.path / name).read_bytes() != written.encode():
        text = "was edited after it was written: its values are as they were, its bytes are not"
        folder.found.damaged(name, text, name)
    update, benchmark = cell.split("/")[-2:]
    address = {
        "study": folder.study.name,
        **{key: getattr(run, key) for key in ("model", "method", "staleness", "seed")},
        "update": int(update),
        "benchmark": benchmark,
    }
    _compare(folder, name, found, address, "its place in the folder says")
    scores = f"{cell}/scores.parquet"
    if not folder.has(scores):
        return False
    folder.tell(scores)
    try:
        again = summarize(read_scores(folder.path / scores))
        if (found.get("made_from") or {}).get("synthetic"):
            again = {key: again[key] for key in again if key not in MADE_UP}
    except ValueError as error:
        folder.found.damaged(scores, without(folder.path / scores, str(error)), scores)
        return False
    _compare(folder, name, found, again, f"comes out of {scores}")
    return True


def _compare(
    folder: Folder, name: str, found: Mapping[str, Any], expected: Mapping[str, Any], what: str
) -> None:
    for key, value in expected.items():
        if found.get(key) == value:
            continue
        if key == "problems":
            folder.found.damaged(name, f"problems: are not what {what}", name)
        elif _nearly(found.get(key), value):
            text = f"{key}: {value!r} {what} on this machine: it differs in the last digits"
            folder.found.note(name, text)
        else:
            folder.found.damaged(name, f"{key}: is {found.get(key)!r}, but {value!r} {what}", name)


def _nearly(found: object, expected: object) -> bool:
    return (
        isinstance(found, float)
        and isinstance(expected, float)
        and abs(found - expected) < LAST_DIGITS
    )


def check_products(folder: Folder) -> int:
    """Compare tables, figures and page with their records; make the tables again.

    Returns:
        How many tables were made again.
    """
    study = folder.study.study
    _study(folder)
    for figure in study.figures:
        _record(folder, f"figures/{figure}.png")
    _record(folder, "explore.html")
    if folder.is_file(record_of(Path(REPORT)).as_posix()):
        _record(folder, REPORT)
    elif folder.has(REPORT):
        folder.found.note(REPORT, REPORT_TEXT)
    return sum(_table(folder, table) for table in study.tables)


def _study(folder: Folder) -> None:
    """Blame study.yaml, and not all that was made from it, if all records know another one."""
    study = folder.study.study
    products = [f"tables/{name}.md" for name in study.tables]
    products += [f"figures/{name}.png" for name in study.figures]
    records = [record_of(Path(name)).as_posix() for name in [*products, "explore.html"]]
    known = [(folder.json(name) or {}).get("sources", {}).get(STUDY) for name in records]
    known = [sha256 for sha256 in known if sha256 is not None]
    alone = len(known) > 1 and len({*known}) == 1
    if alone and folder.has(STUDY) and folder.sha256(STUDY) != known[0]:
        text = f"is not the file that all {len(known)} of tables, figures and page were made from: "
        text += "it was edited or damaged, or the study is another since and not done"
        folder.found.damaged(STUDY, text, STUDY)


def _record(folder: Folder, target: str) -> dict[str, Any] | None:
    """Compare the files of a product and what it was made from with its record.

    Returns:
        The record; None where it or a product is missing or damaged, or a source is another now.
    """
    name = record_of(Path(target)).as_posix()
    record = folder.json(name)
    if record is None:
        return None
    whole = True
    for product, sha256 in record.get("products", {}).items():
        if folder.has(product) and folder.sha256(product) != sha256:
            folder.found.damaged(product, f"was changed after it was made: {name} tells", target)
        whole = whole and folder.has(product)
    sources = record.get("sources", {})
    found = {source: _source(folder, source) for source in sources}
    changed = [name for name, sha256 in sources.items() if found[name] not in (sha256, None)]
    if changed and whole:
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        text = f"was made from another {changed[0]}{more} than lies there now"
        folder.found.damaged(target, text, target)
    # Of fewer sources another table would come out.
    return record if whole and found == sources else None


def _source(folder: Folder, name: str) -> str | None:
    """Return the hash of a source, None where it is missing or known to be bad."""
    if name.startswith(REFERENCE):
        path = folder.papers / Path(name).name
        return folder.other(path) if path.is_file() else None
    if not folder.has(name):
        return None
    # Of metrics, times do not count.
    return source_sha256(folder.path / name) if name.endswith(METRICS) else folder.sha256(name)


def _table(folder: Folder, table: str) -> bool:
    target = f"tables/{table}.md"
    record = _record(folder, target)
    if record is None and folder.has(record_of(Path(target)).as_posix()):
        return False
    if folder.irregular or not folder.has(STUDY):
        return False
    folder.tell(target)
    try:
        texts = make(table, Results(folder.path), folder.papers)
    except UserError:
        return False  # a source is damaged, as another finding says
    for suffix, text in texts.items():
        name = f"tables/{table}.{suffix}"
        if not folder.has(name) or (folder.path / name).read_bytes() == text.encode():
            continue
        made_by = (record or {}).get("environment", {}).get("code", "an unknown revision")
        if made_by == code_revision() and not made_by.endswith("-dirty"):
            folder.found.damaged(name, "is not what comes out of the same results", target)
        else:
            text = f"this code makes another text of the same results; it was made by {made_by}"
            folder.found.note(name, text)
    return True
