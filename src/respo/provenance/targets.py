"""The commands that make what lies in a results folder, as the rules of the workflow know it."""

import shlex
from pathlib import Path
from typing import NamedTuple

from respo.provenance.places import Place
from respo.provenance.sources import SUFFIX


class Command(NamedTuple):
    """What stands around a target.

    Attributes:
        before: a target below the study's folder.
        after: it.
        where: the folder in which to run it, empty for the one of this process, or any with the
            project.
    """

    before: str
    after: str
    where: str


def command(study_folder: Path, study: str) -> Command:
    """Return the command around targets of a results folder.

    Args:
        study_folder: `results/STUDY`.
        study: its name.
    """
    folder = study_folder.resolve()
    root, parent = folder.parents[1], folder.parent.as_posix()
    here = root == Path.cwd()
    # Results that lie elsewhere than beside a Snakefile are known to the rules by their whole path.
    if here or (root / "Snakefile").is_file():
        parent = folder.parent.name
    config = "" if parent == "results" else f" results={shlex.quote(parent)}"
    return Command(
        before=f"snakemake {shlex.quote(f'{parent}/{folder.name}')}/",
        after=f" --config study={shlex.quote(study)}{config}",
        where="" if here or parent == folder.parent.as_posix() else root.as_posix(),
    )


def remake(study_folder: Path, study: str, target: str) -> str:
    """Return the command that makes a target anew, though it is there.

    Args:
        study_folder: `results/STUDY`.
        study: its name.
        target: below the study's folder.
    """
    return make(study_folder, study, target, " --force")


def make(study_folder: Path, study: str, target: str, options: str = "") -> str:
    """Return the command that makes a target that is not there; arguments as in `remake`."""
    before, after, where = command(study_folder, study)
    before = before.removeprefix("snakemake")
    return _there(where, f"snakemake{options}{before}{shlex.quote(target)}{after}")


def make_all(study_folder: Path, study: str) -> str:
    """Return the command that makes a whole study; arguments as in `remake`."""
    _, after, where = command(study_folder, study)
    return _there(where, f"snakemake{after}")


def _there(where: str, words: str) -> str:
    return f"cd {shlex.quote(where)} && {words}" if where else words


def target_of(place: Place) -> str:
    """Return the file below the study's folder that a rule makes, empty for a whole study."""
    run = place.run.name if place.run else ""
    match place.kind:
        case "cell" | "scores" | "generations":
            return f"{run}/eval/{place.update}/{place.name}/{place.path.name}"
        case "run" | "metrics" | "branches" | "checkpoint":
            return f"{run}/train.json"
        case "initial":
            return f"initial/{place.name}/initial.json"
        case "data":
            return f"data/{place.side}/{place.name}.parquet"
        case "table":
            return _product(place, f"tables/{place.name}", (".html", ".md", ".tex", ".csv"))
        case "figure":
            return _product(place, f"figures/{place.name}", (".png", ".pdf"))
        case "page":
            return _product(place, "explore", (".html",))
        case "report":
            return _product(place, "report", (".html",))
    return ""


def _product(place: Place, stem: str, suffixes: tuple[str, ...]) -> str:
    """Return the file that was asked for, if it is one that a rule makes; else the first one."""
    asked = stem + place.path.name.removeprefix(Path(stem).name)
    made = asked in {stem + suffix for suffix in (*suffixes, SUFFIX)}
    # A table may have others beside, such as contrasts.
    made = made or (place.path.suffix in suffixes and place.path.is_file())
    return asked if made else stem + suffixes[0]
