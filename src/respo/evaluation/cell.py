"""Sum up the scores of one checkpoint on one benchmark, as one cell of a table.

The cell holds pass@1 with its cluster-bootstrap standard error, the accuracy of the majority vote
(null for code, which has none), the counts behind them, and the hashes of everything it was made
from. Scores, configuration and training that do not belong together are refused.
"""

import argparse
from pathlib import Path
from typing import Any

import yaml

from respo.cli import UserError, command
from respo.environment import environment
from respo.evaluation.trained import anew, checkpoint_hash, read_train
from respo.files import sha256_of, write_record
from respo.provenance.environments import run_made_from
from respo.statistics import cluster_bootstrap, pass_at_1
from respo.statistics.scores import Scores, read_scores

# What the configuration of a run that ends before its first update would say.
BASELINE: dict[str, Any] = {"staleness": 0, "seed": 0, "training": {"updates": 0}}


@command
def main() -> None:
    """Read the command line and write the cell."""
    parser = argparse.ArgumentParser(prog="python -m respo.evaluation.cell", description=__doc__)
    parser.add_argument("--scores", type=Path, required=True, help="of respo.evaluation.score")
    parser.add_argument(
        "--run-config",
        type=Path,
        required=True,
        help="config.yaml of the run; of a baseline, that of its weights",
    )
    parser.add_argument("--train", type=Path, required=True, help="train.json of the run")
    parser.add_argument("--out", type=Path, required=True, help="cell.json to write")
    for name in ("study", "model", "method", "benchmark"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("staleness", "seed", "update"):
        parser.add_argument(f"--{name}", type=int, required=True)
    options = parser.parse_args()

    checkpoint, run = _check_run(options)
    try:
        scores = read_scores(options.scores)
    except ValueError as error:
        raise UserError(str(error)) from None
    _check_complete(options.scores, scores)
    _check_checkpoint(options, scores, checkpoint)
    address = {
        name: getattr(options, name)
        for name in ("study", "model", "method", "staleness", "seed", "update", "benchmark")
    }
    made_from = _made_from(options, scores, checkpoint, run)
    cell = {**address, **summarize(scores), "made_from": made_from}
    cell["problems"] = cell.pop("problems")  # many lines: last, for those who read the file
    write_record(options.out, cell)


def summarize(scores: Scores) -> dict[str, Any]:
    """Return the numbers of a cell, from scores with as many samples for each problem."""
    samples = int(scores.samples_P[0])
    mean_P = scores.correct_P / scores.samples_P
    return {
        "samples": samples,
        "problems": [
            {"id": name, "correct": correct, "samples": samples}
            for name, correct in zip(scores.problem_id, scores.correct_P.tolist(), strict=True)
        ],
        "pass_at_1": pass_at_1(scores.correct_P, scores.samples_P),
        "standard_error": float(cluster_bootstrap([mean_P]).standard_error_J[0]),
        "majority": None if scores.majority_P is None else float(scores.majority_P.mean()),
        "responses": scores.responses,
        "unparsed": scores.status["unparsed"],
        "timed_out": scores.status["timeout"],
        "failed": scores.status["failed"],
        "truncated": scores.truncated,
        "mean_response_tokens": scores.mean_response_tokens,
    }


def _check_complete(path: Path, scores: Scores) -> None:
    first, samples = scores.problem_id[0], scores.samples_P[0]
    for name, n in zip(scores.problem_id, scores.samples_P, strict=True):
        if n != samples:
            raise UserError(
                f"{path}: problem {name!r} has {n} samples, but problem {first!r} has {samples}; "
                "generate the missing ones"
            )
    verifier = scores.made_from.get("verifier")
    if isinstance(verifier, dict) and verifier.get("name") != "code" and scores.majority_P is None:
        raise UserError(f"{path}: column 'boxed' is missing; delete the file and start again")
    if scores.truncated is None or scores.mean_response_tokens is None:
        raise UserError(
            f"{path}: a cell needs the columns 'response_tokens' and 'truncated', without gaps"
        )


def _check_run(options: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    """Check that the run is the one asked for, and complete.

    Returns:
        The hash of its checkpoint, and what the run was made from.
    """
    train, remedy = read_train(options.train), anew(options.train)
    if train.get("config_sha256") != sha256_of(options.run_config):
        raise UserError(
            f"{options.train}: config_sha256: is not that of {options.run_config}, which was "
            f"changed after training; {remedy}"
        )
    config = _read_config(options.run_config) if options.update else BASELINE
    for key in ("seed", "staleness"):
        if config.get(key) != getattr(options, key):
            raise UserError(
                f"{options.run_config}: {key}: is {config.get(key)!r}, but --{key} is "
                f"{getattr(options, key)}; give the configuration of the run with this {key}"
            )
    training = config.get("training")
    updates = training.get("updates") if isinstance(training, dict) else None
    if updates is None or train.get("update") != updates:
        raise UserError(
            f"{options.train}: update: the training ended at update {train.get('update')!r} of "
            f"{updates!r}, which {options.run_config} asks for; {remedy}"
        )
    return checkpoint_hash(options.train, train, str(options.update)), run_made_from(train)


def _read_config(path: Path) -> dict[str, Any]:
    """Read what the trainer has validated: not with the schema, whose import takes longer."""
    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, ValueError, AttributeError, RecursionError):
        config = None
    if not isinstance(config, dict):
        raise UserError(f"{path}: holds no configuration of a run; delete it and start again")
    return config


def _check_checkpoint(options: argparse.Namespace, scores: Scores, checkpoint: str) -> None:
    """Check, where the scores tell, that the responses are of the checkpoint of this run."""
    generations = scores.made_from.get("generations")
    found = generations.get("checkpoint_sha256") if isinstance(generations, dict) else None
    if found is not None and found != checkpoint:
        raise UserError(
            f"{options.scores}: checkpoint_sha256: the responses are not of the checkpoint that "
            f"{options.train} names for update {options.update}; delete the file and its "
            "generations, and start again"
        )


def _made_from(
    options: argparse.Namespace, scores: Scores, checkpoint: str, run: dict[str, Any]
) -> dict[str, Any]:
    """Gather hashes and versions of this step, under ``scores`` and ``run`` those before it."""
    return {
        "scores_sha256": sha256_of(options.scores),
        "run_config_sha256": sha256_of(options.run_config),
        "checkpoint_sha256": checkpoint,
        "verifier": scores.made_from.get("verifier"),
        "environment": environment("numpy", "pyarrow"),
        "run": run,
        "scores": scores.made_from,
    }


if __name__ == "__main__":
    main()
