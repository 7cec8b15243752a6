"""What is said of a path of which nothing can be told."""

from pathlib import Path

from respo.config import ResolvedStudy, load_resolved_study
from respo.provenance.inside import MANIFEST
from respo.provenance.of_run import is_made_up
from respo.provenance.places import KINDS, Place, absolute, place_in, study_folder
from respo.provenance.targets import make, remake, target_of


def absent(path: Path) -> str:
    """Say of a path where nothing is whether the study makes it, and how.

    Raises:
        UserError: the study's configuration is damaged.
    """
    folder = study_folder(path)
    place = place_in(path, folder) if folder else None
    if folder is None or place is None:
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
    if first in ("logs", "benchmarks"):
        what = "log" if first == "logs" else "duration"
        return f"{path}: is the {what} of a step. Give what the step made, such as a cell.json"
    return f"{path}: is nothing whose origin is recorded. Give {KINDS}"
