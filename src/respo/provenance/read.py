"""Tell of any path where it comes from, as one dictionary."""

import shlex
from pathlib import Path
from typing import Any

from respo.cli import UserError
from respo.config import ResolvedStudy, load_resolved_study
from respo.environment import code_revision
from respo.parquet import parquet_made_from
from respo.provenance import inputs, of_product, places, unknown
from respo.provenance.compare import Told, hash_of, source, weights
from respo.provenance.inside import MANIFEST, is_file, links_out
from respo.provenance.of_cell import of_cell
from respo.provenance.of_run import of_run, read_train
from respo.provenance.places import TABLES, Place, locate
from respo.provenance.shapes import mapping
from respo.provenance.synthetic import MADE_UP, made_up_by
from respo.provenance.targets import command, remake, target_of

OF_RUN = ("run", "metrics", "branches", "checkpoint")
OF_CELL = ("cell", "scores", "generations")
PACKED = (
    "it lies in a pack: snakemake makes it where the project and this study's configuration are, "
    "and also what the pack leaves out, such as weights"
)


def read(path: Path, study_folder: Path | None = None) -> dict[str, Any]:
    """Tell where a file or folder comes from, and whether that is still what lies there.

    Args:
        path: a cell, scores, generations, metrics, a run, a checkpoint, initial weights, rows, a
            table, a figure, a page, a report, or the folder of a study.
        study_folder: where to look for a table or figure that lies outside of its results folder.

    Returns:
        `path`, `kind`, `warnings`, and as far as it applies: `study`, `run`, `update`, `name`;
        `settings` (see `settings.settings`); `made_from`, a list of inputs with hash and state
        (unchanged, changed, missing; see `compare`); `training_set`, `benchmark_rows`, `initial`
        (see `inputs`); `environments` by step; `differing`, the keys in which the environments of
        the sources of a table differ, by step; `verifier`, `sampling`, `training` (starts, times),
        `durations` in seconds by step, of generation, scoring and cell those of the whole job, else
        those of the work in it; `sources`; `command`, which makes it anew, or where
        `synthetic` is true makes up the whole folder; `code_here`, the revision of this checkout.

    Raises:
        UserError: there is no such path, it is nothing whose origin is recorded, it is damaged, or
            it lies in a pack with links that lead out of it.
    """
    for folder in (study_folder, places.study_folder(path)):
        if folder is not None:
            _check_pack(folder)
    if study_folder is not None and not (study_folder / "study.yaml").is_file():
        wrong = "has no study.yaml" if study_folder.is_dir() else "no such folder"
        raise UserError(f"{study_folder}: {wrong}; --study takes results/STUDY")
    if not path.exists():
        raise UserError(unknown.absent(path))
    if not path.is_dir():
        is_file(path)
    place = locate(path)
    if place is None:
        raise UserError(unknown.other(path))
    if place.kind == "product":
        found = of_product.elsewhere(path, study_folder)
        if isinstance(found, dict):
            return {"path": str(path), "kind": "table or figure", "warnings": [], **found}
        place = found
    if not place.path.is_dir():
        is_file(place.path)
    study = _study(place)
    told: Told = {"path": str(place.path), "kind": place.kind, "warnings": []}
    if study is not None:
        told["study"] = {
            "name": study.name,
            "title": study.study.title,
            "folder": str(place.study),
        }
    if place.run is not None:
        run = place.run
        told["run"] = {
            "model": run.model,
            "method": run.method,
            "staleness": run.staleness,
            "seed": run.seed,
        }
    told |= {key: getattr(place, key) for key in ("update", "name") if getattr(place, key)}
    told |= _of(place, study)
    if place.study is not None and study is not None:
        told |= _commands(place, study)
        if (place.study / MANIFEST).is_file():
            told["warnings"] = [*told["warnings"], PACKED]
        if MADE_UP in told["warnings"]:
            told |= {"command": made_up_by(place.study, study.name), "synthetic": True}
    if place.study is None and (why := unknown.little_told(path)):
        told["warnings"] = [*told["warnings"], why]
    if told.get("environments"):
        told["code_here"] = code_revision()
    return told


def _check_pack(folder: Path) -> None:
    """Refuse a pack with links that lead out of it: it is not as it was made, and may be anybody's.

    Raises:
        UserError: it has one.
    """
    if (folder / MANIFEST).is_file() and (link := next(links_out(folder), None)):
        raise UserError(
            f"{link}: leads out of the pack, by a link, and was not read; unpack the archive again "
            f"(or delete {folder / MANIFEST} if the folder is your own study by now)"
        )


def _study(place: Place) -> ResolvedStudy | None:
    return load_resolved_study(place.study / "study.yaml") if place.study else None


def _of(place: Place, study: ResolvedStudy | None) -> Told:
    if place.kind in OF_CELL:
        return of_cell(place, study)
    if place.study is None or study is None:
        if place.kind == "data":
            return {"rows": inputs.rows(place.path)}
        return {"recorded": parquet_made_from(place.path)}
    if place.kind in OF_RUN:
        return _of_run(place, study)
    match place.kind:
        case "data":
            return {"rows": inputs.rows(place.path), "side": place.side}
        case "initial":
            return _of_initial(place)
        case "report":
            return of_product.of_report(place, study)
        case "study":
            return of_product.of_study(place.study, study)
        case _:
            return of_product.of_product(place, study)


def _of_run(place: Place, study: ResolvedStudy) -> Told:
    assert place.study is not None
    assert place.run is not None
    told = of_run(place.study, study, place.run)
    train = read_train(place.study, place.run)
    if place.kind == "run":
        for name, sha256 in mapping(train.get("outputs")).items():
            if name in TABLES:
                path = place.run.folder(place.study) / name
                told["made_from"].append(source(Path(name).stem, path, sha256, hash_of(path)))
    if place.kind in TABLES.values():
        recorded = parquet_made_from(place.path)
        keys = ("config_sha256", "data_sha256", "initial_sha256")
        if train and any(recorded.get(key) != train.get(key) for key in keys):
            told["warnings"].append(
                f"{place.path}: is not of the training that train.json beside it tells of"
            )
        if recorded.get("synthetic") and MADE_UP not in told["warnings"]:
            told["warnings"].append(MADE_UP)
        known = mapping(train.get("outputs")).get(place.path.name)
        told["made_from"].append(source("this file", place.path, known, hash_of(place.path)))
    if place.kind == "checkpoint":
        folder = place.run.folder(place.study) / "checkpoints" / str(place.update)
        recorded_hash = mapping(train.get("checkpoints")).get(str(place.update))
        told["made_from"].append(
            weights("weights of this checkpoint", folder, recorded_hash, any_size=True)
        )
    return told


def _of_initial(place: Place) -> Told:
    assert place.study is not None
    folder = place.study / "initial" / place.name
    told = inputs.initial(folder)
    recorded = told.get("weights_sha256")
    return {
        "initial": told,
        "made_from": [weights("weights", folder / "weights", recorded, any_size=True)]
        if recorded
        else [],
        "environments": {"initial weights": [told["environment"]]} if "environment" in told else {},
        "durations": {"initial weights": told.get("seconds")},
    }


def _commands(place: Place, study: ResolvedStudy) -> Told:
    """Return the command that makes it anew, and one that only draws it again."""
    assert place.study is not None
    folder = shlex.quote(str(place.study))
    target = target_of(place)
    if not target:
        after = command(place.study, study.name).after
        return {"command": f"snakemake{after}"}
    told = {"command": remake(place.study, study.name, target)}
    match place.kind:
        case "table":
            packed = place.study / "reference"
            papers = shlex.quote(str(packed)) if packed.is_dir() else "config/reference"
            words = f"table {place.name} --study {folder} --reference {papers}"
        case "figure":
            words = f"figure {place.name} --study {folder}"
        case "page":
            words = f"page --study {folder}"
        case _:
            return told
    return told | {"redraw": f"python -m respo.reporting.{words}"}
