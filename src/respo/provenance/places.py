"""What a path is: a cell, a file of a run, a table ... told by its place, or by what is in it."""

import os
import re
from dataclasses import dataclass, replace
from pathlib import Path

from respo.config import Run
from respo.parquet import parquet_columns
from respo.provenance.sources import SUFFIX, record_of

# What a Parquet file is, by columns that no other kind has together.
PARQUET = {
    "scores": {"problem_id", "correct", "status"},
    "generations": {"problem_id", "response", "truncated"},
    "branches": {"update", "sign", "bin"},
    "metrics": {"update", "log_ratio_mean"},
    "data": {"id", "prompt"},
}
TABLES = {"metrics.parquet": "metrics", "branches.parquet": "branches"}
RUN_FILES = {"train.json": "run", "config.yaml": "run", **TABLES}
CELL_FILES = {
    "cell.json": "cell",
    "scores.parquet": "scores",
    "generations.parquet": "generations",
}
KINDS = (
    "a cell, scores, generations, a run, its metrics, branches or a checkpoint, initial weights, "
    "rows, a table, a figure, the page, the report, or the folder of a study"
)
PRODUCTS = (".csv", ".md", ".html", ".tex", ".png", ".pdf", ".svg")
RUN = re.compile(r"([^/]+)/([^/]+)/N(0|[1-9]\d*)/seed(0|[1-9]\d*)(?:/(.*))?")
CELL = re.compile(r"eval/(\d+)/([^/]+)(?:/([^/]+))?")
CHECKPOINT = re.compile(r"checkpoints/(\d+)(?:/.*)?")
INITIAL = re.compile(r"initial/([^/]+)(?:/(initial\.json|config\.yaml|weights.*))?")
DATA = re.compile(r"data/(train|held_out)/([^/]+)\.(?:parquet|yaml)")


@dataclass(frozen=True)
class Place:
    """What a path is.

    Attributes:
        path: as it was given; of a folder of a cell or of weights, the file that tells of it.
        kind: cell, scores, generations, run, metrics, branches, checkpoint, initial, data, table,
            figure, page, report, study or product; the last is a table or figure outside of its
            results folder.
        study: folder `results/STUDY`, None outside of one.
        run: of a cell or of a file of a run.
        update: of a checkpoint or cell.
        name: of a benchmark, a set of rows, a model or a product such as `respo/table1`.
        side: of rows: `train` or `held_out`.
    """

    path: Path
    kind: str
    study: Path | None = None
    run: Run | None = None
    update: int | None = None
    name: str = ""
    side: str = ""


def locate(path: Path) -> Place | None:
    """Tell what a path is that is there; None where nothing tells it.

    Raises:
        UserError: it is a damaged Parquet file.
    """
    folder = study_folder(path)
    return (place_in(path, folder) if folder else None) or _outside(path)


def study_folder(path: Path) -> Path | None:
    """Return the results folder of a study that a path is in or is."""
    here = absolute(path)
    found = next((p for p in (here, *here.parents) if (p / "study.yaml").is_file()), None)
    if found and not path.is_absolute() and found.is_relative_to(Path.cwd()):
        return found.relative_to(Path.cwd())
    return found


def absolute(path: Path) -> Path:
    """Return a path without `..`; links are not followed: weights may lie elsewhere."""
    return Path(os.path.abspath(path))  # noqa: PTH100


def place_in(path: Path, folder: Path) -> Place | None:
    """Tell by its name what a path below a results folder is, or would be if it were there."""
    name = absolute(path).relative_to(folder.absolute())
    text = name.as_posix()
    there = Place(path, "study", folder)
    if text in (".", "study.yaml"):
        return there
    if text in ("explore.html", "report.html", f"explore{SUFFIX}", f"report{SUFFIX}"):
        return replace(there, kind=text.partition(".")[0].replace("explore", "page"))
    if name.parts[0] in ("tables", "figures") and len(name.parts) > 1 and not path.is_dir():
        id_ = record_of(Path(*name.parts[1:])).as_posix().removesuffix(SUFFIX)
        return replace(there, kind=name.parts[0][:-1], name=id_)
    if match := DATA.fullmatch(text):
        return replace(
            there, path=path.with_suffix(".parquet"), kind="data", side=match[1], name=match[2]
        )
    if match := INITIAL.fullmatch(text):
        return replace(there, kind="initial", name=match[1])
    if match := RUN.fullmatch(text):
        return _in_run(there, Run(match[1], match[2], int(match[3]), int(match[4])), match[5] or "")
    return None


def _in_run(there: Place, run: Run, rest: str) -> Place | None:
    there = replace(there, run=run)
    if not rest or rest in RUN_FILES:
        return replace(there, kind=RUN_FILES.get(rest, "run"))
    if match := CHECKPOINT.fullmatch(rest):
        return replace(there, kind="checkpoint", update=int(match[1]))
    match = CELL.fullmatch(rest)
    if match and (match[3] or "cell.json") in CELL_FILES:
        file = match[3] or "cell.json"
        path = there.path if match[3] else there.path / file
        return replace(there, path=path, kind=CELL_FILES[file], update=int(match[1]), name=match[2])
    return None


def _outside(path: Path) -> Place | None:
    """Tell by its content what lies in no results folder, or at no known place of one."""
    if path.suffix == ".parquet" and path.is_file():
        columns = set(parquet_columns(path))
        kinds = [kind for kind, needed in PARQUET.items() if needed <= columns]
        return Place(path, kinds[0]) if kinds else None
    if path.name.endswith(".json") and path.is_file():
        head = path.read_bytes()[:4096]
        return Place(path, "cell") if b'"benchmark"' in head else None
    if path.suffix in PRODUCTS and path.is_file():
        return Place(path, "product")
    return None
