"""What a table, figure, page or report was made from, and whether that is still what lies there."""

import base64
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from respo.cli import UserError
from respo.config import ResolvedStudy
from respo.files import sha256_of
from respo.provenance import sources
from respo.provenance.compare import Told
from respo.provenance.durations import duration
from respo.provenance.environments import Environment
from respo.provenance.inside import is_file, is_other
from respo.provenance.of_run import is_made_up
from respo.provenance.of_sources import of_files, state_words
from respo.provenance.places import Place, place_in
from respo.provenance.shapes import texts
from respo.provenance.synthetic import MADE_UP, is_synthetic

DIGITS = re.compile(rb"[Mm]ade from results (?:<code>)?((?:synthetic-)?[0-9a-f]{12})")
METHODS = re.compile(rb"([\w/]+) drawn from methods ([0-9a-f]{12}): ([\w.,-]+)")


def of_product(place: Place, study: ResolvedStudy) -> Told:
    """Tell what a table, figure or page of a results folder was made from."""
    assert place.study is not None
    path = sources.record_of(place.path)
    if not is_file(path):
        found = digits(place.path)
        made_up = [MADE_UP] if is_synthetic(found) else []
        text = f"{path}: is not there, so nothing says what this was made from; make it anew"
        return {"digits": found, "warnings": [*made_up, text]}
    record = sources.read_sources(path)
    told = of_files(place.study, study, record["sources"])
    told["durations"] |= _own_duration(place)
    told["environments"][place.kind] = [texts(record["environment"])]
    told["digits"] = record["made_from"]
    if is_synthetic(record["made_from"]):
        told["warnings"].append(MADE_UP)
    told["warnings"] += _changed_products(place.study, record["products"])
    found = digits(place.path)
    if found not in (None, record["made_from"]):
        told["warnings"].append(
            f"{place.path}: says that it was made from results {found}, its record from "
            f"{record['made_from']}"
        )
    return told


def digits(path: Path) -> str | None:
    """Return the digits over its sources that a table or figure carries."""
    data = path.read_bytes()
    if path.suffix == ".csv":
        lines = data.decode("utf-8", "replace").splitlines()
        last = [line.rpartition(",")[2] for line in lines[:2]]
        return last[1] if len(last) == 2 and last[0] == "made_from" else None
    match = DIGITS.search(data)
    return match[1].decode() if match else None


def _changed_products(study_folder: Path, products: Mapping[str, str]) -> list[str]:
    states = {name: sources.state(study_folder / name, sha) for name, sha in products.items()}
    words = {"changed": "was changed after it was made", "no file": state_words("no file")}
    return [f"{study_folder / name}: {words[s]}" for name, s in states.items() if s in words]


def of_study(study_folder: Path, study: ResolvedStudy) -> Told:
    """Tell of all runs and cells that a results folder holds."""
    expected = [run.folder(study_folder) / "train.json" for run in study.runs()]
    expected += [
        run.cell(study_folder, update, benchmark)
        for run in study.evaluated()
        for update in study.checkpoints(run)
        for benchmark in study.study.benchmarks
    ]
    there = [path for path in expected if path.is_file()]
    names = {path.relative_to(study_folder).as_posix(): None for path in there}
    told = of_files(study_folder, study, names)
    told["warnings"] += [f"{p}: {state_words('no file')}" for p in expected if is_other(p)]
    told["warnings"] += [MADE_UP] if is_made_up(study_folder, study) else []
    return told | {"expected": len(expected), "there": len(there)}


def of_report(place: Place, study: ResolvedStudy) -> Told:
    """Tell whether a report is as it was made, and what it shows as it lies beside it."""
    assert place.study is not None
    path = sources.record_of(place.path)
    if is_file(path):
        record = sources.read_sources(path)
        own = {"digits": record["made_from"]}
        shown = {n: sources.state(place.study / n, sha) for n, sha in record["sources"].items()}
        warnings = _changed_products(place.study, record["products"])
    else:
        own = {}
        shown = _looked_for(place, study)
        warnings = [f"{path}: is not there, so nothing says what made the report; make it anew"]
        warnings += [
            f"{place.path}: does not show {name} as it lies there: one of the two has changed"
            for name, state in shown.items()
            if state == "changed"
        ]
    ignored = ("unchanged",) if own else ("unchanged", "changed", "missing")
    warnings += [
        f"{place.study / name}: {state_words(state)}"
        for name, state in shown.items()
        if state not in ignored
    ]
    told = of_files(place.study, study, _behind(place.study, shown))
    records = [path] if own else []
    told["environments"] |= _drawn(place.study, [*records, *_records(place.study, shown)])
    told["durations"] |= _own_duration(place)
    warnings += [*told["warnings"], *([MADE_UP] if is_made_up(place.study, study) else [])]
    return {**told, **own, "contents": shown, "warnings": warnings}


def _looked_for(place: Place, study: ResolvedStudy) -> dict[str, sources.State]:
    """Look for each file in the report itself: what is not found is changed, or the report is."""
    assert place.study is not None
    text = place.path.read_bytes()
    return {name: _shown(place.study / name, text) for name in sources.shown_in_report(study)}


def _shown(path: Path, report: bytes) -> sources.State:
    if is_other(path):
        return "no file"
    if not path.is_file():
        return "missing"
    return "unchanged" if base64.b64encode(path.read_bytes()) in report else "changed"


def _records(study_folder: Path, shown: Mapping[str, sources.State]) -> list[Path]:
    """Return the records of tables, figures and page that are unchanged since."""
    unchanged = (study_folder / name for name, state in shown.items() if state == "unchanged")
    return [record for path in unchanged if is_file(record := sources.record_of(path))]


def _behind(study_folder: Path, shown: Mapping[str, sources.State]) -> dict[str, str]:
    """Return the sources of what a report shows."""
    files: dict[str, str] = {}
    for path in _records(study_folder, shown):
        files |= sources.read_sources(path)["sources"]
    return files


def _drawn(study_folder: Path, records: Iterable[Path]) -> dict[str, list[Environment]]:
    """Return those of drawing, by the kind of what was drawn."""
    found: dict[str, list[Environment]] = {}
    for path in records:
        place = place_in(path, study_folder)
        own = texts(sources.read_sources(path)["environment"])
        if place and own not in found.setdefault(place.kind, []):
            found[place.kind].append(own)
    return found


def _own_duration(place: Place) -> dict[str, float]:
    """Return how long it took to draw it, by its kind; nothing where that is not noted."""
    assert place.study is not None
    job = {"page": "explore", "report": "report"}.get(place.kind, f"{place.kind}s/{place.name}")
    seconds = duration(place.study, job)
    return {} if seconds is None else {place.kind: seconds}


def elsewhere(path: Path, study_folder: Path | None) -> Place | Told:
    """Tell of a table or figure outside of its results folder.

    Args:
        path: of the file.
        study_folder: where to look for it.

    Returns:
        Its place in the results folder, or what it says of itself.

    Raises:
        UserError: it says nothing, or is not of the study.
    """
    if study_folder is not None:
        if found := _find(path, study_folder):
            return found
        raise UserError(
            f"{path}: is no table or figure of {study_folder} as it was made there last; give "
            "the study that it is from"
        )
    if match := METHODS.search(path.read_bytes()):
        id_, digest, names = (part.decode() for part in match.groups())
        return {
            "kind": "figure of methods",
            "name": id_,
            "digits": digest,
            "methods": names.split(","),
            "command": f"python -m respo.reporting.figure {id_} --methods {names} "
            f"--out {path.name}",
        }
    if found_digits := digits(path):
        return {
            "digits": found_digits,
            "warnings": [
                *([MADE_UP] if is_synthetic(found_digits) else []),
                "it lies in no results folder; --study results/STUDY tells what the "
                "study knows of it",
            ],
        }
    raise UserError(f"{path}: carries no mark of what it was made from")


def _find(path: Path, study_folder: Path) -> Place | None:
    sha256 = sha256_of(path)
    for record in sorted(study_folder.rglob(f"*{sources.SUFFIX}")):
        for name, recorded in sources.read_sources(record)["products"].items():
            if recorded == sha256:
                kind = name.partition("/")[0].removesuffix("s")
                return Place(
                    study_folder / name,
                    kind if "/" in name else "page",
                    study_folder,
                    name=sources.record_of(Path(name.partition("/")[2]))
                    .as_posix()
                    .removesuffix(sources.SUFFIX),
                )
    return None
