"""What is recorded of a cell, and of the scores and generations before it."""

from pathlib import Path
from typing import Any

from respo.config import ResolvedStudy
from respo.files import read_json
from respo.parquet import parquet_made_from
from respo.provenance import environments, inputs
from respo.provenance.compare import Told, hash_of, source, weights
from respo.provenance.durations import duration
from respo.provenance.of_run import initial_weights, of_run
from respo.provenance.places import Place
from respo.provenance.shapes import mapping, number
from respo.provenance.synthetic import MADE_UP

NUMBERS = ("pass_at_1", "standard_error", "samples", "responses", "unparsed", "timed_out", "failed")
STEPS = {"generate": "generation", "score": "scoring", "cell": "cell"}
JOBS = {"generations": "generate", "scores": "score", "cell": "cell"}


def of_cell(place: Place, study: ResolvedStudy | None) -> Told:
    """Tell where a cell, scores or generations are from.

    Args:
        place: of one of these.
        study: that it is of, None outside of a results folder.
    """
    told = _recorded(place)
    generations = told.pop("of_generations")
    told["sampling"] = mapping(generations.get("sampling"))
    if place.study is None or place.run is None or study is None:
        return told
    run = of_run(place.study, study, place.run)
    made_from = [*run.pop("made_from"), *_states(place, told.pop("hashes"), generations)]
    # What the cell tells of its run was true when it was made: the run may be another since.
    of_run_then = told["environments"].pop("training", [])
    steps = {"training": of_run_then or run["environments"].get("training", [])}
    told["warnings"] += [w for w in run.pop("warnings") if w not in told["warnings"]]
    name = f"{place.run.name}/{place.update}/{place.name}"
    steps_before = list(STEPS)[: 1 + list(STEPS).index(JOBS[place.kind])]
    times = {STEPS[job]: duration(place.study, f"eval/{name}.{job}") for job in steps_before}
    return {
        **run,
        **told,
        "benchmark_rows": inputs.rows(_benchmark(place)),
        "made_from": made_from,
        "environments": steps | told["environments"],
        "durations": run.get("durations", {}) | times,
    }


def _recorded(place: Place) -> Told:
    """Return what the file itself tells."""
    if place.kind == "cell":
        cell = mapping(read_json(place.path))
        made_from = mapping(cell.get("made_from"))
        scores = mapping(made_from.get("scores"))
        steps = environments.of_cell(made_from)
        numbers = {key: cell[key] for key in NUMBERS if number(cell.get(key)) is not None}
        if isinstance(cell.get("problems"), list):
            numbers["problems"] = len(cell["problems"])
        names = ("study", "model", "method", "staleness", "seed", "update", "benchmark")
        told = {"address": {key: cell.get(key) for key in names}, "numbers": numbers}
    else:
        made_from = parquet_made_from(place.path)
        scores = made_from if place.kind == "scores" else {"generations": made_from}
        steps = environments.of_scores(scores)
        told = {}
    hashes = {**scores, **made_from}
    warnings = [MADE_UP] if made_from.get("synthetic") else []
    return {
        **told,
        "verifier": mapping(scores.get("verifier")) or None,
        "environments": {step: found for step, found in steps.items() if found},
        "hashes": {key: hashes.get(key) for key in _HASHES},
        "of_generations": mapping(scores.get("generations")),
        "warnings": warnings,
    }


_HASHES = ("scores_sha256", "generations_sha256")


def _states(place: Place, hashes: Told, generations: Told) -> list[Told]:
    """Compare the files that lie beside a cell, and its checkpoint, with what it was made from."""
    assert place.study is not None
    assert place.run is not None
    found = []
    checkpoint: Any = generations.get("checkpoint_sha256")
    if checkpoint:
        path = place.run.folder(place.study) / "checkpoints" / str(place.update)
        if place.run.is_baseline:
            path = initial_weights(place.study, place.run)
        found.append(weights("checkpoint", path, checkpoint))
    if recorded := generations.get("benchmark_sha256"):
        path = _benchmark(place)
        found.append(source("benchmark", path, recorded, hash_of(path)))
    for name in ("generations", "scores"):
        if recorded := hashes.get(f"{name}_sha256"):
            path = place.path.with_name(f"{name}.parquet")
            found.append(source(name, path, recorded, hash_of(path)))
    return found


def _benchmark(place: Place) -> Path:
    assert place.study is not None
    return place.study / "data" / "held_out" / f"{place.name}.parquet"
