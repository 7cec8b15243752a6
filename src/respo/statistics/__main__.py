"""Print what a scores file says: pass@1 with its standard error, pass@k, majority vote, counts.

The standard error is that of the cluster bootstrap over problems (10,000 replicates).
"""

import argparse
import sys
from pathlib import Path

from respo.statistics.bootstrap import cluster_bootstrap
from respo.statistics.pass_at_k import pass_at_1, pass_at_k
from respo.statistics.scores import Scores, read_scores


def main() -> None:
    """Read the command line and print the summary."""
    parser = argparse.ArgumentParser(prog="python -m respo.statistics", description=__doc__)
    parser.add_argument("--scores", type=Path, required=True, help="file of respo.evaluation.score")
    parser.add_argument(
        "--k", type=int, nargs="+", help="default: 1, 2, 4, ... up to the samples per problem"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap (default 0)")
    arguments = parser.parse_args()
    try:
        scores = read_scores(arguments.scores)
        check_tries(arguments.scores, scores, arguments.k or [])
        text = summary(scores, arguments.k, arguments.seed)
    except OSError as error:
        sys.exit(f"error: {arguments.scores}: {error.strerror or error}")
    except ValueError as error:
        sys.exit(f"error: {error}")
    print(text)


def check_tries(path: Path, scores: Scores, ks: list[int]) -> None:
    """Refuse tries that the file has no estimate for.

    Raises:
        ValueError: a ``k`` is less than 1 or exceeds the samples of a problem.
    """
    position = int(scores.samples_P.argmin())
    fewest = int(scores.samples_P[position])
    for k in ks:
        if not 1 <= k <= fewest:
            raise ValueError(
                f"{path}: --k {k}: must lie between 1 and {fewest}, the number of samples of "
                f"problem {scores.problem_id[position]!r}"
            )


def summary(scores: Scores, ks: list[int] | None, seed: int) -> str:
    """Return the text that is printed, without the last line break.

    Raises:
        ValueError: a ``k`` exceeds the samples of a problem.
    """
    correct_P, samples_P = scores.correct_P, scores.samples_P
    tokens = scores.mean_response_tokens
    fewest, most = int(samples_P.min()), int(samples_P.max())
    ks = ks or [2**power for power in range(fewest.bit_length())]
    pass_at = {k: pass_at_k(samples_P, correct_P, k).mean() for k in ks}
    error = cluster_bootstrap([correct_P / samples_P], seed=seed).standard_error_J[0]
    lines = [
        ("problems", f"{len(scores.problem_id)}"),
        ("responses", f"{scores.responses}"),
        ("per problem", f"{fewest}" if fewest == most else f"{fewest} to {most}"),
        *((name, f"{scores.status[name]}") for name in ("unparsed", "timeout", "failed")),
        *([] if scores.truncated is None else [("truncated", f"{scores.truncated}")]),
        *([] if tokens is None else [("mean tokens", f"{tokens:.1f}")]),
        ("pass@1", f"{pass_at_1(correct_P, samples_P):.4f} +- {error:.4f}"),
        *((f"pass@{k}", f"{value:.4f}") for k, value in pass_at.items() if k > 1),
    ]
    if scores.majority_P is not None:
        lines.append(("majority", f"{scores.majority_P.mean():.4f}"))
    return "\n".join(f"{name:<12}{value}" for name, value in lines)


if __name__ == "__main__":
    main()
