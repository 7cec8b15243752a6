"""Times of results that were copied, finished while snakemake was gone, or of another clock.

Snakemake makes a file anew if something that it is made from is newer. A copy gives files the
times of its own making, in any order, and all training would be done again. But every result tells
the hashes of what it was made from: where these are the hashes of what lies there, it is up to
date, and gets the time of the newest of them. Tables and figures are left alone, since they are
made in seconds.
"""

import functools
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from respo.cli import UserError
from respo.files import read_json, sha256_of
from respo.parquet import parquet_made_from

Hash = Callable[[Path], str]


class Result(NamedTuple):
    """Files that one job makes.

    Attributes:
        files: the files.
        benchmark: how long the job took, for snakemake a file like the others; it may be missing.
        inputs: what it was made from.
        holds: whether its hashes are those of the inputs, asked only if it is older than these.
    """

    files: list[Path]
    benchmark: str
    inputs: list[Path]
    holds: Callable[[], bool]


def settle_times(study: Path) -> list[Path]:
    """Give results that are up to date a time that says so; none is of the future afterwards.

    Args:
        study: folder `results/STUDY`; it need not be there.

    Returns:
        The results that were older than what they are made from.

    Raises:
        OSError: the time of a file cannot be set.
    """
    _leave_the_future(study)
    settled = []
    for result in _results(study, functools.cache(sha256_of)):
        paths = [*result.files, *result.inputs]
        if not all(path.is_file() for path in paths):
            continue
        newest = max(path.stat().st_mtime_ns for path in result.inputs)
        benchmark = study / "benchmarks" / f"{result.benchmark}.tsv"
        files = [*result.files, *([benchmark] if benchmark.is_file() else [])]
        older = [path for path in files if path.stat().st_mtime_ns < newest]
        if older and _holds(result):
            for path in older:
                os.utime(path, ns=(newest, newest))
            settled += result.files
    return settled


def _leave_the_future(study: Path) -> None:
    """Snakemake refuses what was made from a file of the future."""
    now = time.time_ns()
    for path in study.rglob("*"):
        if path.is_file() and path.stat().st_mtime_ns > now:
            os.utime(path, ns=(now, now))


def _holds(result: Result) -> bool:
    try:
        return result.holds()
    except (UserError, KeyError, TypeError, AttributeError):  # damaged, or of another shape
        return False


def _results(study: Path, sha256: Hash) -> Iterator[Result]:
    """Yield all results but tables and figures; what is made from others comes after them."""
    for rows in study.glob("data/*/*.parquet"):
        yield _rows(rows, study, sha256)
    for record in study.glob("initial/*/initial.json"):
        yield _initial(record, study, sha256)
    for train in study.glob("*/*/N*/seed*/train.json"):
        yield _run(train, study, sha256)
    for generations in study.glob("*/*/N*/seed*/eval/*/*/generations.parquet"):
        yield _generations(generations, study, sha256)
    for scores in study.glob("*/*/N*/seed*/eval/*/*/scores.parquet"):
        yield _scores(scores, study, sha256)
    for cell in study.glob("*/*/N*/seed*/eval/*/*/cell.json"):
        yield _cell(cell, study, sha256)


def _rows(rows: Path, study: Path, sha256: Hash) -> Result:
    config = rows.with_suffix(".yaml")

    def holds() -> bool:
        return parquet_made_from(rows)["config_sha256"] == sha256(config)

    return Result([rows], _name(rows.with_suffix(""), study), [config], holds)


def _initial(record: Path, study: Path, sha256: Hash) -> Result:
    config = record.with_name("config.yaml")

    def holds() -> bool:
        content = _content(record)
        return content["config_sha256"] == sha256(config) and _rows_hold(study, content, sha256)

    return Result([record], _name(record.parent, study), [config, *_train_rows(study)], holds)


def _run(train: Path, study: Path, sha256: Hash) -> Result:
    """A run, or a baseline, which has no training set and no configuration of its own."""
    initial = study / "initial" / train.relative_to(study).parts[0] / "initial.json"
    config, files = train.with_name("config.yaml"), [train]
    if config.is_file():
        files += [train.with_name("metrics.parquet"), train.with_name("branches.parquet")]
    else:
        config = initial.with_name("config.yaml")

    def holds() -> bool:
        content = _content(train)
        return (
            content["config_sha256"] == sha256(config)
            and content["initial_sha256"] == _content(initial)["weights_sha256"]
            and _rows_hold(study, content, sha256)
        )

    benchmark = f"train/{_name(train.parent, study)}"
    return Result(files, benchmark, [config, initial, *_train_rows(study)], holds)


def _generations(generations: Path, study: Path, sha256: Hash) -> Result:
    train, rows = _train(generations), _held_out(generations, study)

    def holds() -> bool:
        made_from = parquet_made_from(generations)
        return made_from["checkpoint_sha256"] == _checkpoint(generations) and made_from[
            "benchmark_sha256"
        ] == sha256(rows)

    return Result([generations], _of_cell(generations, study, "generate"), [train, rows], holds)


def _scores(scores: Path, study: Path, sha256: Hash) -> Result:
    generations = scores.with_name("generations.parquet")

    def holds() -> bool:
        return parquet_made_from(scores)["generations_sha256"] == sha256(generations)

    return Result([scores], _of_cell(scores, study, "score"), [generations], holds)


def _cell(cell: Path, study: Path, sha256: Hash) -> Result:
    scores, train = cell.with_name("scores.parquet"), _train(cell)
    config = train.with_name("config.yaml")
    if not config.is_file():
        config = study / "initial" / cell.relative_to(study).parts[0] / "config.yaml"

    def holds() -> bool:
        made_from = _content(cell)["made_from"]
        return (
            made_from["scores_sha256"] == sha256(scores)
            and made_from["run_config_sha256"] == sha256(config)
            and made_from["checkpoint_sha256"] == _checkpoint(cell)
        )

    return Result([cell], _of_cell(cell, study, "cell"), [scores, train, config], holds)


def _name(path: Path, study: Path) -> str:
    return path.relative_to(study).as_posix()


def _of_cell(path: Path, study: Path, stage: str) -> str:
    """Return the name of the benchmark of one of the three jobs that make a cell."""
    folder = path.parent
    run = _name(folder.parents[2], study)
    return f"eval/{run}/{folder.parent.name}/{folder.name}.{stage}"


def _train_rows(study: Path) -> list[Path]:
    return sorted(study.glob("data/train/*.parquet"))


def _rows_hold(study: Path, content: dict[str, Any], sha256: Hash) -> bool:
    """Whether the training set that a result names by its hash, if it does, lies there."""
    named = content.get("data_sha256")
    return named is None or any(sha256(path) == named for path in _train_rows(study))


def _train(of_cell: Path) -> Path:
    return of_cell.parents[3] / "train.json"


def _held_out(of_cell: Path, study: Path) -> Path:
    return study / "data" / "held_out" / f"{of_cell.parent.name}.parquet"


def _checkpoint(of_cell: Path) -> Any:
    """Return the hash of the weights that the run of a cell has written."""
    return _content(_train(of_cell))["checkpoints"][of_cell.parents[1].name]


def _content(path: Path) -> dict[str, Any]:
    """Return what a record says, nothing if it is damaged."""
    try:
        content = read_json(path)
    except UserError:
        return {}
    return content if isinstance(content, dict) else {}
