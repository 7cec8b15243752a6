"""Do the hashes that files hold of each other agree?"""

from collections.abc import Mapping
from typing import Any

from respo.check.expected import cells
from respo.check.folder import Folder
from respo.check.weights import check_weights
from respo.config import Run
from respo.config.study import BASELINE
from respo.training.outputs import TABLES

AFTER = "was changed after that was made"
START = "A start writes it anew, and if it differs then, makes anew what depends on it"


def check_chain(folder: Folder, skip_weights: bool) -> None:
    """Compare the hashes of data, weights, runs and evaluations.

    Args:
        folder: where the findings go, too.
        skip_weights: read of weights the headers only.
    """
    for side, rows in (("train", folder.study.datasets), ("held_out", folder.study.benchmarks)):
        for name in rows:
            _data(folder, f"data/{side}/{name}")
    for model in folder.study.models:
        _initial(folder, model, skip_weights)
    for run in folder.study.runs():
        _run(folder, run, skip_weights)
    for run in folder.study.evaluated():
        train = folder.json(f"{run.name}/train.json") or {}
        for cell in cells(folder.study, run):
            _evaluation(folder, run, cell, train)


def _same(folder: Folder, name: str, holder: str, recorded: object) -> None:
    """Compare a file with the hash that another one, made from it, holds of it.

    Made anew it has that hash again, or what was made from it is made anew too.
    """
    if recorded is None or not folder.has(name) or not folder.has(holder):
        return
    if folder.sha256(name) != recorded:
        start = f". {START}" if name.endswith(".yaml") else ""
        text = f"is not the file that {holder} was made from: it {AFTER}{start}"
        folder.found.damaged(name, text, name)


def _data(folder: Folder, stem: str) -> None:
    made_from = folder.made_from(f"{stem}.parquet") or {}
    _same(folder, f"{stem}.yaml", f"{stem}.parquet", made_from.get("config_sha256"))


def _initial(folder: Folder, model: str, skip_weights: bool) -> None:
    name = f"initial/{model}/initial.json"
    record = folder.json(name)
    if record is None:
        return
    _same(folder, f"initial/{model}/config.yaml", name, record.get("config_sha256"))
    local = folder.study.local_models().get(model)
    if local is None:
        folder.found.note(f"initial/{model}", "published weights lie elsewhere and were not read")
        return
    _same(
        folder,
        f"data/train/{local.policy.warm_start.data}.parquet",
        name,
        record.get("data_sha256"),
    )
    check_weights(
        folder, f"initial/{model}/weights", record.get("weights_sha256"), name, skip_weights
    )


def _run(folder: Folder, run: Run, skip_weights: bool) -> None:
    name = f"{run.name}/train.json"
    train = folder.json(name)
    if train is None:
        return
    updates = folder.study.training(run).updates
    if train.get("update") != updates:
        text = f"the training ended at update {train.get('update')} of {updates}"
        folder.found.damaged(name, text, name)
    _same(folder, f"{run.name}/config.yaml", name, train.get("config_sha256"))
    data = f"data/train/{folder.study.train_data(run)}.parquet"
    _same(folder, data, name, train.get("data_sha256"))
    initial = folder.json(f"initial/{run.model}/initial.json") or {}
    _agree(folder, name, train, "initial_sha256", initial.get("weights_sha256"), "initial weights")
    hashes = train.get("outputs") or {}
    for table in TABLES:
        recorded = hashes.get(table)
        file = f"{run.name}/{table}"
        if recorded is not None and folder.has(file) and folder.sha256(file) != recorded:
            text = f"is not the file that was written with {name}"
            folder.found.damaged(file, text, name)
        made_from = folder.made_from(file) or {}
        for key in ("config_sha256", "data_sha256", "initial_sha256"):
            _agree(folder, file, made_from, key, train.get(key), f"{name}'s", name)
    checkpoints = train.get("checkpoints") or {}
    saved = [str(update) for update in folder.study.training(run).checkpoints]
    for update in saved:
        if update in checkpoints:
            path = f"{run.name}/checkpoints/{update}"
            check_weights(folder, path, checkpoints[update], name, skip_weights)
        elif checkpoints:
            folder.found.damaged(name, f"checkpoints: lacks update {update} of the study", name)
    if others := checkpoints.keys() - saved:
        text = f"checkpoints: {min(others)!r} is no update at which the study saves weights"
        folder.found.damaged(name, text, name)


def _agree(
    folder: Folder,
    name: str,
    record: Mapping[str, Any],
    key: str,
    other: object,
    whose: str,
    target: str | None = None,
) -> None:
    """Compare a hash that a file holds with that which another one holds of the same thing."""
    if record.get(key) is not None and other is not None and record[key] != other:
        text = f"{key}: is not that of {whose}: they do not belong together"
        folder.found.damaged(name, text, target or name)


def _evaluation(folder: Folder, run: Run, cell: str, train: Mapping[str, Any]) -> None:
    """Compare what a cell's files hold of each other, of the checkpoint and of the benchmark."""
    update, benchmark = cell.split("/")[-2:]
    checkpoints = train.get("checkpoints") or {}
    weights = checkpoints.get(update)
    generations, scores = f"{cell}/generations.parquet", f"{cell}/scores.parquet"
    made = folder.made_from(generations) or {}
    whose = f"{run.name}/train.json at update {update}"
    _agree(folder, generations, made, "checkpoint_sha256", weights, whose)
    data = f"data/held_out/{benchmark}.parquet"
    _same(folder, data, generations, made.get("benchmark_sha256"))
    judged = folder.made_from(scores) or {}
    _same(folder, generations, scores, judged.get("generations_sha256"))
    if made and judged.get("generations") not in (None, made):
        text = f"its provenance of the responses is not that of {generations}"
        folder.found.damaged(scores, text, scores)
    name = f"{cell}/cell.json"
    summed = (folder.json(name) or {}).get("made_from") or {}
    _same(folder, scores, name, summed.get("scores_sha256"))
    _agree(folder, name, summed, "checkpoint_sha256", weights, whose)
    if judged and summed.get("scores") not in (None, judged):
        folder.found.damaged(name, f"its provenance of the scores is not that of {scores}", name)
    config = f"initial/{run.model}" if run.method == BASELINE else run.name
    _same(folder, f"{config}/config.yaml", name, summed.get("run_config_sha256"))
