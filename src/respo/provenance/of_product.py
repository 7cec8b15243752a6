"""What a table, figure, page or report was made from, and whether that is still what lies there."""

import base64
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from respo.cli import UserError
from respo.config import ResolvedStudy, Run
from respo.files import read_json, sha256_of
from respo.provenance import environments, sources
from respo.provenance.compare import Told
from respo.provenance.environments import Environment
from respo.provenance.inside import is_file, is_other
from respo.provenance.of_run import is_made_up, read_train
from respo.provenance.places import CELL, RUN, Place
from respo.provenance.shapes import mapping, texts
from respo.provenance.synthetic import MADE_UP, is_synthetic

DIGITS = re.compile(rb"[Mm]ade from results (?:<code>)?((?:synthetic-)?[0-9a-f]{12})")
METHODS = re.compile(rb"([\w/]+) drawn from methods ([0-9a-f]{12}): ([\w.,-]+)")
FEW = 3
STEPS = ("training", "generation", "scoring", "cell")


def of_product(place: Place) -> Told:
    """Tell what a table, figure or page of a results folder was made from."""
    assert place.study is not None
    path = sources.record_of(place.path)
    if not is_file(path):
        found = digits(place.path)
        made_up = [MADE_UP] if is_synthetic(found) else []
        text = f"{path}: is not there, so nothing says what this was made from; make it anew"
        return {"digits": found, "warnings": [*made_up, text]}
    record = sources.read_sources(path)
    told = of_files(place.study, record["sources"])
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
    words = {"changed": "was changed after it was made", "no file": _state_words("no file")}
    return [f"{study_folder / name}: {words[s]}" for name, s in states.items() if s in words]


def of_files(study_folder: Path, files: Mapping[str, str | None]) -> Told:
    """Tell of files below a results folder: whose they are, their states, what differs.

    Args:
        study_folder: `results/STUDY`.
        files: hash by name as it was recorded, None where there is no record of it.
    """
    states = {
        name: sources.state(sources.resolve(study_folder, name), sha256) if sha256 else None
        for name, sha256 in files.items()
    }
    runs: dict[str, list[str]] = {}
    told: dict[str, list[tuple[str, Environment]]] = {step: [] for step in STEPS}
    warnings = [
        f"{sources.resolve(study_folder, name)}: {_state_words(state)}"
        for name, state in states.items()
        if state not in ("unchanged", None)
    ]
    for name in files:
        if match := RUN.fullmatch(name):
            run = Run(match[1], match[2], int(match[3]), int(match[4]))
            runs.setdefault(run.name, []).append(name)
            try:
                for step, found in _environments(study_folder, run, name).items():
                    told[step] += [(name, one) for one in found]
            except UserError as error:
                warnings.append(str(error))
    differing = {step: environments.differing(pairs) for step, pairs in told.items()}
    warnings += [
        f"{step} was not the same for all sources: {key}: {_counts(key, values)}"
        for step, keys in differing.items()
        for key, values in keys.items()
    ]
    return {
        "sources": {
            "files": {n: {"sha256": sha, "state": states[n]} for n, sha in files.items()},
            "by_run": runs,
        },
        "environments": {step: _distinct(one for _, one in told[step]) for step in STEPS},
        "differing": {step: found for step, found in differing.items() if found},
        "warnings": warnings,
    }


def _counts(key: str, values: Mapping[str, list[str]]) -> str:
    """Say how many have each value, the rarest first, and of few which."""
    told = []
    for value, names in sorted(values.items(), key=lambda item: len(item[1])):
        few = f" ({', '.join(names)})" if len(names) <= FEW else ""
        told.append(f"{environments.short(key, value)} in {len(names)}{few}")
    return "; ".join(told)


def _state_words(state: Any) -> str:
    words = {"missing": "is not there any more", "no file": "is no regular file, and was not read"}
    return words.get(state, "has changed since")


def _distinct(found: Iterable[Environment]) -> list[Environment]:
    kept: list[Environment] = []
    for one in found:
        if one not in kept:
            kept.append(one)
    return kept


def _environments(study_folder: Path, run: Run, name: str) -> dict[str, list[Environment]]:
    """Return the environments by step of one source, as far as it is there."""
    path = study_folder / name
    rest = name.removeprefix(f"{run.name}/")
    if not path.is_file() or not CELL.fullmatch(rest):
        return {"training": environments.environments(read_train(study_folder, run))}
    if path.name != "cell.json":
        return {}  # scores, whose cell tells the same
    steps = environments.of_cell(mapping(mapping(read_json(path)).get("made_from")))
    if not steps["training"]:
        steps["training"] = environments.environments(read_train(study_folder, run))
    return steps


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
    told = of_files(study_folder, {p.relative_to(study_folder).as_posix(): None for p in there})
    told["warnings"] += [f"{p}: {_state_words('no file')}" for p in expected if is_other(p)]
    told["warnings"] += [MADE_UP] if is_made_up(study_folder, study) else []
    return told | {"expected": len(expected), "there": len(there)}


def of_report(place: Place, study: ResolvedStudy) -> Told:
    """Tell whether what a report shows is still what lies beside it."""
    assert place.study is not None
    text = place.path.read_bytes()
    names = sources.shown_in_report(study)
    contents = {name: _shown(place.study / name, text) for name in names}
    warnings = [
        f"{place.study / name}: {_state_words(state)}"
        for name, state in contents.items()
        if state in ("changed", "no file")
    ]
    warnings += [MADE_UP] if is_made_up(place.study, study) else []
    return {"contents": contents, "warnings": warnings}


def _shown(path: Path, report: bytes) -> sources.State:
    if is_other(path):
        return "no file"
    if not path.is_file():
        return "missing"
    return "unchanged" if base64.b64encode(path.read_bytes()) in report else "changed"


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
