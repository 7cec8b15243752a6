"""Sum up the scores of one checkpoint on one benchmark, as one cell of a table.

The cell holds pass@1 with its cluster-bootstrap standard error, the counts behind it, and the
hashes of everything it was made from.
"""

import argparse
from pathlib import Path
from typing import Any

from respo.cli import UserError, command
from respo.files import environment, read_json, sha256_of, write_json
from respo.statistics import cluster_bootstrap, pass_at_1
from respo.statistics.scores import Scores, read_scores


@command
def main() -> None:
    """Read the command line and write the cell."""
    parser = argparse.ArgumentParser(prog="python -m respo.evaluation.cell", description=__doc__)
    parser.add_argument("--scores", type=Path, required=True, help="of respo.evaluation.score")
    parser.add_argument("--run-config", type=Path, required=True, help="config.yaml of the run")
    parser.add_argument("--train", type=Path, required=True, help="train.json of the run")
    parser.add_argument("--out", type=Path, required=True, help="cell.json to write")
    for name in ("study", "model", "method", "benchmark"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("staleness", "seed", "update"):
        parser.add_argument(f"--{name}", type=int, required=True)
    options = parser.parse_args()

    try:
        scores = read_scores(options.scores)
    except ValueError as error:
        raise UserError(str(error)) from None
    _check_complete(options.scores, scores)
    address = {
        name: getattr(options, name)
        for name in ("study", "model", "method", "staleness", "seed", "update", "benchmark")
    }
    write_json(
        options.out, {**address, **summarize(scores), "made_from": _made_from(options, scores)}
    )


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
    if scores.truncated is None or scores.mean_response_tokens is None:
        raise UserError(
            f"{path}: a cell needs the columns 'response_tokens' and 'truncated', without gaps"
        )


def _made_from(options: argparse.Namespace, scores: Scores) -> dict[str, Any]:
    """Gather hashes and versions: of this step, and under ``scores`` those of the steps before."""
    train = read_json(options.train)
    checkpoints = train.get("checkpoints", {}) if isinstance(train, dict) else {}
    return {
        "scores_sha256": sha256_of(options.scores),
        "run_config_sha256": sha256_of(options.run_config),
        "checkpoint_sha256": checkpoints.get(str(options.update)),
        "verifier": scores.made_from.get("verifier"),
        "environment": environment("numpy", "pyarrow"),
        "scores": scores.made_from,
    }


if __name__ == "__main__":
    main()
