"""What is said of a path of which nothing can be told."""

from pathlib import Path
from typing import NamedTuple

from respo.config import ResolvedStudy, load_resolved_study, load_study
from respo.provenance.inside import MANIFEST
from respo.provenance.of_run import is_made_up
from respo.provenance.places import KINDS, Place, absolute, place_in, study_folder
from respo.provenance.sources import CONFIG
from respo.provenance.targets import make, make_all, remake, target_of

NAMED = 8  # of many files


class NotBegun(NamedTuple):
    """A study that the checkout knows, whose results folder has no `study.yaml`."""

    folder: Path
    study: ResolvedStudy
    place: Place


def absent(path: Path) -> str:
    """Say of a path where nothing is whether the study makes it, and how.

    Raises:
        UserError: the study's configuration is damaged.
    """
    folder = study_folder(path)
    if folder is None:
        return _not_begun(path)
    place = place_in(path, folder)
    if place is None:
        return f"{path}: no such file or folder"
    if (folder / MANIFEST).is_file():
        return f"{path}: is not in this pack; {folder / MANIFEST} lists what is"
    study = load_resolved_study(folder / "study.yaml")
    if not _is_of(place, study):
        return f"{path}: no such file, and study {study.name} has no such {place.kind}"
    if is_made_up(folder, study):
        return f"{path}: is not there, and the results in {folder} are made up (synthetic)"
    target = target_of(place)
    if (folder / target).exists():  # and this, which is made with it, is lost
        return f"{path}: is not there. Make it anew: {remake(folder, study.name, target)}"
    return f"{path}: is not made yet. Make it: {make(folder, study.name, target)}"


def _not_begun(path: Path) -> str:
    """Say of a path in no results folder whether a study of the checkout makes it, and how."""
    if known := not_begun(path):
        folder, name = known.folder, known.study.name
        target = target_of(known.place)
        command = make(folder, name, target) if target else make_all(folder, name)
        return f"{path}: is not made yet. Make it: {command}"
    text = f"{path}: no such file or folder"
    names = absolute(path).parts
    if "results" not in names[:-1]:
        return text
    name = names[names.index("results") + 1]
    if (CONFIG / "studies" / f"{name}.yaml").is_file():
        return f"{text}, and study {name} makes none of that name"
    return f"{text}, and there is no config/studies/{name}.yaml that would say what makes it"


def not_begun(path: Path) -> NotBegun | None:
    """Return the study of the checkout that makes a path, where the results have no `study.yaml`.

    Raises:
        UserError: the study's configuration is wrong.
    """
    here = absolute(path)
    for folder in (here, *here.parents):
        for config in (folder.parent.parent / "config", CONFIG):
            if not (config / "studies" / f"{folder.name}.yaml").is_file():
                continue
            # A method or a paper may have the name of a study.
            place = place_in(path, folder)
            study = load_study(config, folder.name) if place else None
            if place and study and _is_of(place, study):
                return NotBegun(folder, study, place)
    return None


def little_told(path: Path) -> str | None:
    """Say why little is told of a result: its folder does not say of which study it is."""
    if not (known := not_begun(path)):
        return None
    return (
        f"{known.folder / 'study.yaml'}: is not there, so only what the file itself records is "
        f"told. Make it: {make(known.folder, known.study.name, 'study.yaml')}"
    )


def _is_of(place: Place, study: ResolvedStudy) -> bool:
    """Tell whether a study makes what would lie at a place."""
    run = place.run
    match place.kind:
        case "table":
            return place.name in study.study.tables
        case "figure":
            return place.name in study.study.figures
        case "initial":
            return place.name in study.models
        case "data":
            return place.name in (study.datasets if place.side == "train" else study.benchmarks)
        case "cell" | "scores" | "generations":
            of_run = run in study.evaluated() and place.update in study.checkpoints(run)
            return of_run and place.name in study.study.benchmarks
        case "checkpoint":
            return run in study.runs() and place.update in study.training(run).checkpoints
        case "run" | "metrics" | "branches":
            return run in study.runs()
    return True


def other(path: Path) -> str:
    """Say why nothing is told of what is there, and what to give instead."""
    if path.name.endswith((".tar.gz", ".tgz")):
        return f"{path}: is an archive. Unpack a pack (tar xf {path}) and give what lies in it"
    if path.name == MANIFEST:
        return (
            f"{path}: lists the files of a pack; `python -m respo.check {path.parent}` compares "
            "them. Give one of them, or the folder"
        )
    folder = study_folder(path)
    first = absolute(path).relative_to(folder.absolute()).parts[0] if folder else ""
    if first and path.is_dir():
        what = {"logs": "logs", "benchmarks": "durations"}.get(first)
        if what:
            return f"{path}: holds the {what} of steps. Give what a step made, such as a cell.json"
        return f"{path}: is a folder of many results. Give one of them: {_below(path)}"
    if first in ("logs", "benchmarks"):
        what = "log" if first == "logs" else "duration"
        return f"{path}: is the {what} of a step. Give what the step made, such as a cell.json"
    if known := not_begun(path):
        return (
            f"{known.folder / 'study.yaml'}: is not there, so nothing is told of {path}. "
            f"Make it: {make(known.folder, known.study.name, 'study.yaml')}"
        )
    return f"{path}: is nothing whose origin is recorded. Give {KINDS}"


def _below(folder: Path) -> str:
    """Name what lies in a folder; of tables and figures, those in the folders below it."""
    deep = any(name in ("tables", "figures") for name in absolute(folder).parts[-2:])
    paths = (p for p in folder.glob("**/*" if deep else "*") if not (deep and p.is_dir()))
    names = {p.relative_to(folder).as_posix() for p in paths if not p.name.startswith(".")}
    if deep:
        names = {name.partition(".")[0] + ".*" for name in names}
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(sorted(names)[:NAMED]) + more if names else "it is empty"
