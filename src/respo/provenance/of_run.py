"""What is recorded of a run: configuration, inputs, starts, environments."""

from pathlib import Path

from respo.config import ResolvedStudy, Run
from respo.files import read_json
from respo.provenance import inputs
from respo.provenance.compare import Told, hash_of, source, weights
from respo.provenance.environments import environments
from respo.provenance.inside import is_file
from respo.provenance.settings import settings_or_reason
from respo.provenance.shapes import mapping, number, sequence
from respo.provenance.synthetic import MADE_UP


def read_train(study_folder: Path, run: Run) -> Told:
    """Read what training has left on record, empty where it has not ended."""
    path = run.folder(study_folder) / "train.json"
    return mapping(read_json(path)) if is_file(path) else {}


def is_made_up(study_folder: Path, study: ResolvedStudy) -> bool:
    """Tell whether the results of a folder are made up, by the first run that has ended."""
    ended = (train for run in study.runs() if (train := read_train(study_folder, run)))
    return bool(next(ended, {}).get("synthetic"))


def initial_weights(study_folder: Path, run: Run) -> Path:
    """Return the folder of the weights that a run starts from, a link where they are published."""
    return study_folder / "initial" / run.model / "weights"


def of_run(study_folder: Path, study: ResolvedStudy, run: Run) -> Told:
    """Tell where a run is from.

    Args:
        study_folder: `results/STUDY`.
        study: what it holds.
        run: one that lies there.
    """
    train = read_train(study_folder, run)
    first = inputs.initial(study_folder / "initial" / run.model)
    told: Told = {"initial": first, "made_from": [], "warnings": []}
    if not train:
        told["warnings"].append(
            f"{run.folder(study_folder) / 'train.json'}: is not there: the run has not ended"
        )
    if train.get("synthetic"):
        told["warnings"].append(MADE_UP)
    if recorded := train.get("initial_sha256"):
        told["made_from"].append(
            weights("initial weights", initial_weights(study_folder, run), recorded)
        )
    told["environments"] = {"training": environments(train)} if train else {}
    if run.is_baseline:
        return told
    folder = run.folder(study_folder)
    config = folder / "config.yaml"
    if recorded := train.get("config_sha256"):
        told["made_from"].insert(0, source("configuration", config, recorded, hash_of(config)))
    told |= _training_set(study_folder, study, run, train, told["made_from"])
    told["settings"] = settings_or_reason(config, study, run)
    told["training"] = {
        key: train[key]
        for key in (
            "update",
            "ended",
            "seconds",
            "restarts",
            "tokens_generated",
            "peak_memory_mb",
            "prompts",
            "prompts_dropped",
        )
        if key in train
    }
    told["training"]["starts"] = [mapping(start) for start in sequence(train.get("starts"))]
    told["durations"] = {
        "warm start": first.get("seconds"),
        "training": number(train.get("seconds")),
    }
    told["warnings"] += _warnings(told)
    return told


def _training_set(
    study_folder: Path, study: ResolvedStudy, run: Run, train: Told, made_from: list[Told]
) -> Told:
    if run not in study.runs():
        return {}
    name = study.train_data(run)
    path = study_folder / "data" / "train" / f"{name}.parquet"
    found = inputs.rows(path)
    if recorded := train.get("data_sha256"):
        made_from.append(source("training set", path, recorded, found["sha256"]))
    return {"training_set": {"name": name, **found}}


def _warnings(told: Told) -> list[str]:
    objective = told["settings"].get("objective", {})
    found = []
    if objective.get("code_now") not in (None, objective.get("code")):
        found.append(
            f"the formula of objective {objective['name']} has changed since: its code was "
            f"{objective['code']}, and is {objective['code_now']} here"
        )
    if "unreadable" in told["settings"]:
        found.append(told["settings"]["unreadable"])
    if told["initial"].get("configuration_state") == "changed":
        found.append(
            f"{told['initial']['path']}: was made from another configuration than that beside it"
        )
    return found
