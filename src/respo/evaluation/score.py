"""Decide for each generated response whether it is correct.

Reads the generations of this project or of any other one:

{columns}

Writes one row per response, in the order of the input: problem_id, sample, correct, extracted (what
was taken for the answer), status (ok, unparsed, timeout, failed), response_tokens, truncated,
answer. A response whose status is not ok counts as wrong. A Parquet file also says what it was made
from: verifier and version, hash of the generations, packages.
"""

import argparse
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pyarrow as pa

from respo.cli import UserError, command
from respo.evaluation import generations as reading
from respo.evaluation.generations import FORMATS, Generation, read_generations
from respo.files import environment, sha256_of, write_parquet, write_text
from respo.rewards import boxed_answer
from respo.rewards.workers import MEMORY_MB, SECONDS, Verdict, WorkerError, WorkerPool

SCHEMA = pa.schema(
    [
        ("problem_id", pa.string()),
        ("sample", pa.int32()),
        ("correct", pa.bool_()),
        ("extracted", pa.string()),
        ("status", pa.string()),
        ("response_tokens", pa.int32()),
        ("truncated", pa.bool_()),
        ("answer", pa.string()),
    ]
)


@command
def main() -> None:
    """Read the command line, score, write and report."""
    options = _parse()
    start = time.monotonic()
    _check_output(options.out, options.generations)
    generations, provenance = read_generations(options.generations)
    made_from: dict[str, Any] = {
        "generations_sha256": sha256_of(options.generations),
        "generations": provenance,
    }
    if options.verifier == "strict_box":
        verdicts = [_strict_box(generation) for generation in generations]
        made_from["environment"] = environment()
        version = made_from["environment"]["respo"]
    else:
        verdicts = _math_verify(generations, options)
        made_from["environment"] = environment("math-verify", "latex2sympy2_extended", "sympy")
        version = made_from["environment"]["math-verify"]
        made_from["limits"] = {"seconds": options.timeout, "memory_mb": options.memory_mb}
    made_from["verifier"] = {"name": options.verifier, "version": version}

    write_scores(options.out, generations, verdicts, made_from)
    print(_summary(verdicts, time.monotonic() - start))


def write_scores(
    path: Path,
    generations: Sequence[Generation],
    verdicts: Sequence[Verdict],
    made_from: dict[str, Any],
) -> None:
    """Write one row per response; ``made_from`` goes into Parquet files only."""
    rows = [
        {**verdict._asdict(), **generation._asdict()}
        for generation, verdict in zip(generations, verdicts, strict=True)
    ]
    if path.suffix == ".parquet":
        write_parquet(path, pa.Table.from_pylist(rows, schema=SCHEMA), made_from)
    else:
        write_text(
            path,
            "".join(json.dumps({name: row[name] for name in SCHEMA.names}) + "\n" for row in rows),
        )


def _strict_box(generation: Generation) -> Verdict:
    boxed = boxed_answer(generation.response)
    return Verdict(boxed == generation.answer, boxed, "unparsed" if boxed is None else "ok")


def _math_verify(generations: Sequence[Generation], options: argparse.Namespace) -> list[Verdict]:
    pairs = [(generation.answer, generation.response) for generation in generations]
    try:
        with WorkerPool(
            options.workers, seconds=options.timeout, memory_mb=options.memory_mb
        ) as pool:
            return pool.check(pairs, _Progress())
    except WorkerError as error:
        raise UserError(str(error)) from None


class _Progress:
    """Says every five seconds how far the work is, nothing if it is done sooner."""

    def __init__(self, interval: float = 5.0) -> None:
        self.interval = interval
        self.start = self.last = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if now - self.last >= self.interval and done < total:
            self.last = now
            left = (now - self.start) / done * (total - done)
            print(f"scored {done} of {total}, about {left:.0f} s left", file=sys.stderr, flush=True)


def _summary(verdicts: Sequence[Verdict], seconds: float) -> str:
    status = Counter(verdict.status for verdict in verdicts)
    failed = f", {status['failed']} failed" if status["failed"] else ""
    return (
        f"{len(verdicts)} scored, {sum(verdict.correct for verdict in verdicts)} correct, "
        f"{status['unparsed']} unparsed, {status['timeout']} timed out{failed}, {seconds:.1f} s"
    )


def _check_output(out: Path, generations: Path) -> None:
    """Find out before the work whether the result can be written."""
    if out.suffix not in FORMATS:
        raise UserError(f"{out}: the name must end in {' or '.join(FORMATS)}")
    if out.is_dir():
        raise UserError(f"{out}: is a folder; --out names the file to write")
    if out.resolve() == generations.resolve():
        raise UserError(f"{out}: --out would overwrite the generations")
    out.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryFile(dir=out.parent):
        pass


def _parse() -> argparse.Namespace:
    assert __doc__ is not None
    assert reading.__doc__ is not None
    columns = reading.__doc__.split("\n\n", 1)[1].strip()
    parser = argparse.ArgumentParser(
        prog="python -m respo.evaluation.score",
        description=__doc__.replace("{columns}", columns),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--generations", type=Path, required=True, help=".parquet or .jsonl")
    parser.add_argument("--out", type=Path, required=True, help="scores, .parquet or .jsonl")
    parser.add_argument(
        "--verifier",
        choices=("math_verify", "strict_box"),
        default="math_verify",
        help="math_verify: mathematical equivalence (default); "
        "strict_box: the last box in the last 100 characters equals the answer as text",
    )
    math_verify = parser.add_argument_group("options of math_verify")
    add = math_verify.add_argument
    add("--workers", type=_at_least(int, 1), help="processes (default: one per processor)")
    add(
        "--timeout",
        type=_at_least(float, 0.1),
        default=SECONDS,
        metavar="SECONDS",
        help="limit of one response (default %(default)s)",
    )
    add(
        "--memory-mb",
        type=_at_least(int, 256),
        default=MEMORY_MB,
        metavar="M",
        help="limit of a process (default %(default)s)",
    )
    return parser.parse_args()


def _at_least(kind: type, least: float):
    def convert(text: str):
        value = kind(text)
        if not least <= value < math.inf:
            raise argparse.ArgumentTypeError(f"must be at least {least}, not {text}")
        return value

    convert.__name__ = kind.__name__
    return convert


if __name__ == "__main__":
    main()
