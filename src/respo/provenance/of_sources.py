"""What the sources of a table, figure or page have in common, and in what they differ.

Only those are asked that are still what they were: another cell by now tells of another table.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from respo.cli import UserError
from respo.config import ResolvedStudy, Run
from respo.provenance import environments, inputs, sources
from respo.provenance.compare import Told, hash_of, source, weights
from respo.provenance.durations import duration
from respo.provenance.environments import Environment
from respo.provenance.inside import is_other
from respo.provenance.of_run import initial_weights
from respo.provenance.of_source import Source, of_source
from respo.provenance.places import CELL, RUN
from respo.provenance.settings import settings
from respo.provenance.shapes import number

FEW = 3
STEPS = ("training", "generation", "scoring", "cell")
JOBS = {"generation": "generate", "scoring": "score", "cell": "cell"}


def of_files(study_folder: Path, study: ResolvedStudy, files: Mapping[str, str | None]) -> Told:
    """Tell of files below a results folder: whose they are, their states, what they were made from.

    Args:
        study_folder: `results/STUDY`.
        study: that it holds.
        files: hash by name as it was recorded, None where there is no record of it.

    Returns:
        `sources`: `files`, each with hash and state, and names `by_run`; `map`: `columns`,
        benchmarks by label, and `rows`, runs with labels and path; and of those sources that are
        unchanged `configurations`, `inputs`, `environments`, `differing`, `durations` and `counted`
        (of how many `durations` is the sum); `warnings`.
    """
    states = {
        name: sources.state(sources.resolve(study_folder, name), sha256) if sha256 else None
        for name, sha256 in files.items()
    }
    warnings = [
        f"{sources.resolve(study_folder, name)}: {state_words(state)}"
        for name, state in states.items()
        if state not in ("unchanged", None)
    ]
    runs: dict[str, list[str]] = {}
    found: dict[str, Source] = {}
    for name, state in states.items():
        if not (match := RUN.fullmatch(name)):
            continue
        run = Run(match[1], match[2], int(match[3]), int(match[4]))
        runs.setdefault(run.name, []).append(name)
        try:
            if state in ("unchanged", None):
                found[name] = of_source(study_folder, run, name)
        except UserError as error:
            warnings.append(str(error))
    told_by = list(found.values())
    made_of = list(_inputs(study_folder, study, told_by))
    told: dict[str, list[tuple[str, Environment]]] = {
        step: [(name, e) for name, one in found.items() for e in one.environments.get(step, [])]
        for step in STEPS
    }
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
        "map": _map(study, files),
        "configurations": _configurations(study_folder, study, told_by),
        "inputs": made_of,
        "environments": {step: _distinct(one for _, one in told[step]) for step in STEPS},
        "differing": {step: keys for step, keys in differing.items() if keys},
        **_durations(study_folder, told_by, made_of),
        "warnings": warnings,
    }


def _counts(key: str, values: Mapping[str, list[str]]) -> str:
    """Say how many have each value, the rarest first, and of few which."""
    told = []
    for value, names in sorted(values.items(), key=lambda item: len(item[1])):
        few = f" ({', '.join(names)})" if len(names) <= FEW else ""
        told.append(f"{environments.short(key, value)} in {len(names)}{few}")
    return "; ".join(told)


def state_words(state: Any) -> str:
    """Say what is wrong with a source."""
    words = {"missing": "is not there any more", "no file": "is no regular file, and was not read"}
    return words.get(state, "has changed since")


def _distinct(found: Iterable[Environment]) -> list[Environment]:
    kept: list[Environment] = []
    for one in found:
        if one not in kept:
            kept.append(one)
    return kept


def _map(study: ResolvedStudy, files: Iterable[str]) -> Told:
    """Return the benchmarks and runs that are shown, by the words that a table has for them."""
    columns: dict[str, str] = {}
    rows: dict[str, Told] = {}
    for name in files:
        if not (match := RUN.fullmatch(name)):
            continue
        row: Told = {
            "model": study.models[match[1]].label if match[1] in study.models else match[1],
            "method": study.methods[match[2]].label if match[2] in study.methods else match[2],
            "staleness": int(match[3]),
            "seed": int(match[4]),
        }
        path = name
        if cell := CELL.fullmatch(match[5] or ""):
            known = study.benchmarks.get(cell[2])
            columns[known.label if known else cell[2]] = cell[2]
            row["update"] = int(cell[1])
            path = f"{name.partition('/eval/')[0]}/eval/{cell[1]}/BENCHMARK/{cell[3]}"
        rows.setdefault(path, {**row, "path": path})
    order = {name: place for place, name in enumerate(study.benchmarks)}
    ordered = sorted(columns.items(), key=lambda item: order.get(item[1], len(order)))
    return {"columns": dict(ordered), "rows": list(rows.values())}


def _configurations(
    study_folder: Path, study: ResolvedStudy, found: Collection[Source]
) -> dict[str, Any]:
    """Return what the configurations of runs have in common, and the values of what differs."""
    recorded = {one.run: sha for one in found if (sha := one.hashes.get("configuration"))}
    recorded = {run: sha256 for run, sha256 in recorded.items() if not run.is_baseline}
    told: dict[str, Told] = {}
    objectives: dict[str, Told] = {}
    count = 0
    order = {name: place for place, name in enumerate(study.methods)}
    for run, sha256 in sorted(
        recorded.items(), key=lambda item: order.get(item[0].method, len(order))
    ):
        path = run.folder(study_folder) / "config.yaml"
        if is_other(path) or hash_of(path) != sha256:
            continue
        try:
            own = settings(path, study, run)
        except UserError:  # of another version of the project
            continue
        count += 1
        objectives.setdefault(run.method, own["objective"])
        for entry in own["entries"]:
            known = told.setdefault(entry["key"], {"values": [], "counts": [], "entry": entry})
            if entry["value"] not in known["values"]:
                known["values"].append(entry["value"])
                known["counts"].append(0)
            known["counts"][known["values"].index(entry["value"])] += 1
    same = {key for key, one in told.items() if one["counts"] == [count]}
    return {
        "runs": len(recorded),
        "unchanged": count,
        "entries": [one["entry"] for key, one in told.items() if key in same],
        "varying": {
            key: [
                {"value": value, "runs": runs}
                for value, runs in sorted(
                    zip(one["values"], one["counts"], strict=True),
                    key=lambda pair: (not isinstance(pair[0], int | float), str(pair[0]).zfill(9)),
                )
            ]
            for key, one in told.items()
            if key not in same
        },
        "objectives": objectives,
    }


def _inputs(study_folder: Path, study: ResolvedStudy, found: Collection[Source]) -> Iterator[Told]:
    """Yield rows and weights: hash, state, origin, and how many sources were made from them."""
    known = set(study.runs())
    counts: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
    for one in found:
        names = {
            "training set": study.train_data(one.run) if one.run in known else "",
            "initial weights": one.run.model,
            "benchmark": one.benchmark,
        }
        for what, name in names.items():
            if name and (sha256 := one.hashes.get(what)):
                verifier = one.verifier if what == "benchmark" else ""
                counts.setdefault((what, name), Counter())[sha256, verifier] += 1
    order = ["training set", "initial weights", "benchmark"]
    places = {name: place for place, name in enumerate(study.benchmarks)}
    for (what, name), hashes in sorted(
        counts.items(), key=lambda item: (order.index(item[0][0]), places.get(item[0][1], 0))
    ):
        for (sha256, verifier), count in hashes.items():
            told = _input(study_folder, what, name, sha256)
            told |= {"name": name, "count": count, "of": hashes.total()}
            yield told | ({"verifier": verifier} if verifier else {})


def _input(study_folder: Path, what: str, name: str, sha256: str) -> Told:
    if what == "initial weights":
        folder = initial_weights(study_folder, Run(name, "", 0, 0))
        told = weights(what, folder, sha256)
        origin = inputs.initial(folder.parent)
    else:
        side = "train" if what == "training set" else "held_out"
        path = study_folder / "data" / side / f"{name}.parquet"
        origin = inputs.rows(path)
        told = source(what, path, sha256, origin["sha256"])
    keys = ("origin", "version", "revision", "files", "seconds")
    # Of other rows or weights nobody knows by now where they were from.
    of_it = origin if told["state"] in ("unchanged", "listed", "not compared") else {}
    return {**told, **{key: of_it[key] for key in keys if key in of_it}}


def _durations(study_folder: Path, found: Collection[Source], made_of: Iterable[Told]) -> Told:
    """Sum up how long the runs and cells took, as far as it is noted."""
    runs = {one.run: number(one.trained.get("seconds")) for one in found if one.trained}
    cells = {(one.run, one.update, one.benchmark) for one in found if one.benchmark}
    seconds: dict[str, list[float | None]] = {
        "warm start": [one.get("seconds") for one in made_of],
        "training": list(runs.values()),
    }
    for step, job in JOBS.items():
        seconds[step] = [
            duration(study_folder, f"eval/{run.name}/{update}/{benchmark}.{job}")
            for run, update, benchmark in cells
        ]
    noted = {step: [one for one in times if one is not None] for step, times in seconds.items()}
    return {
        "durations": {step: sum(times) for step, times in noted.items() if times},
        "counted": {step: len(times) for step, times in noted.items() if times},
    }
