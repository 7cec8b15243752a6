"""What one source of a table or figure records: a cell, scores, or statistics of a run."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from respo.config import Run
from respo.files import read_json, sha256_of
from respo.parquet import parquet_made_from
from respo.provenance import environments
from respo.provenance.environments import Environment
from respo.provenance.of_run import read_train
from respo.provenance.places import CELL
from respo.provenance.shapes import mapping

Told = dict[str, Any]
# By what its inputs are called, the key of the hash in a record.
OF_RUN = {
    "configuration": "config_sha256",
    "training set": "data_sha256",
    "initial weights": "initial_sha256",
}


@dataclass(frozen=True)
class Source:
    """What a source records.

    Attributes:
        run: that it is of.
        update: of a checkpoint that was evaluated, else None.
        benchmark: of an evaluation, else empty.
        hashes: of its inputs, by what they are: those of `OF_RUN`, and `benchmark`.
        verifier: name and version, empty where nothing was verified.
        environments: by step.
        trained: `train.json` of its run, empty where that tells of another training by now.
    """

    run: Run
    update: int | None = None
    benchmark: str = ""
    hashes: dict[str, str] = field(default_factory=dict)
    verifier: str = ""
    environments: dict[str, list[Environment]] = field(default_factory=dict)
    trained: Told = field(default_factory=dict)


def of_source(study_folder: Path, run: Run, name: str) -> Source:
    """Read what a source records.

    Args:
        study_folder: `results/STUDY`.
        run: that it is of.
        name: of a file that is there, below the study's folder.

    Raises:
        UserError: it is damaged.
    """
    path = study_folder / name
    train = read_train(study_folder, run)
    match = CELL.fullmatch(name.removeprefix(f"{run.name}/"))
    if not match:
        return _of_run(run, path, train)
    made_from = mapping(read_json(path)).get("made_from") if path.suffix == ".json" else None
    if made_from is None and path.suffix != ".json":
        scores: Told = parquet_made_from(path)
    else:
        scores = mapping(mapping(made_from).get("scores"))
    made_from = mapping(made_from)
    generations = mapping(scores.get("generations"))
    checkpoint = generations.get("checkpoint_sha256")
    trained = train if checkpoint in mapping(train.get("checkpoints")).values() else {}
    cell_run = {
        "config_sha256": made_from.get("run_config_sha256"),
        **mapping(made_from.get("run")),
    }
    hashes = dict(_hashes(cell_run if made_from else trained))
    if sha256 := generations.get("benchmark_sha256"):
        hashes["benchmark"] = str(sha256)
    steps = environments.of_cell({**made_from, "scores": scores})
    steps["training"] = steps["training"] or environments.environments(trained)
    verifier = mapping(scores.get("verifier"))
    return Source(
        run=run,
        update=int(match[1]),
        benchmark=match[2],
        hashes=hashes,
        verifier=" ".join(str(verifier[key]) for key in ("name", "version") if key in verifier),
        environments=steps,
        trained=trained,
    )


def _of_run(run: Run, path: Path, train: Told) -> Source:
    """Tell of a file of a run: `train.json`, or one whose training it tells of."""
    if path.suffix == ".parquet":
        own = parquet_made_from(path)
        known = mapping(train.get("outputs")).get(path.name)
        same = all(own.get(key) == train.get(key) for key in OF_RUN.values())
        train = train if same and known in (None, sha256_of(path)) else {}
    else:
        own = train
    steps = {"training": environments.environments(train) if train else []}
    return Source(run=run, hashes=dict(_hashes(own)), environments=steps, trained=train)


def _hashes(record: Told) -> Iterator[tuple[str, str]]:
    for what, key in OF_RUN.items():
        if record.get(key):
            yield what, str(record[key])
