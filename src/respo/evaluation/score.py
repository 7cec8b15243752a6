"""Decide for each generated response whether it is correct.

Reads the generations of this project or of any other one:

{columns}

Writes one row per response, in the order of the input: problem_id, sample, correct, extracted (what
was taken for the answer, cut to 300 characters), boxed (what the majority vote counts: the last box
in the last 100 characters, with the verifier 'choice' the letter; not with 'code'), status (ok,
unparsed, timeout, failed), response_tokens, truncated, answer. A response whose status is not ok
counts as wrong. A Parquet file also says what it was made from: verifier and version, hash of the
generations, packages.

Programs of your own: rows of problem_id and response, and the problems with their tests,

  python -m respo.evaluation.score --verifier code --tests {held_out} \\
      --generations FILE.jsonl --out scores.parquet

The file is read through once before the work, so that an error in it is found at once, and then in
batches: the memory does not depend on the number of responses.
"""

import argparse
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pyarrow as pa

from respo.cli import UserError, command
from respo.evaluation import generations as reading
from respo.evaluation.generations import FORMATS, Generation, Generations
from respo.evaluation.problems import HELD_OUT
from respo.evaluation.verifiers import (
    OPTIONS,
    VERIFIERS,
    Options,
    Verifier,
    gold_for,
    open_verifier,
)
from respo.files import atomic_path, sha256_of
from respo.parquet import parquet_writer
from respo.rewards import boxed_answer
from respo.rewards.workers import MEMORY_MB, SECONDS, Verdict

SCHEMA = pa.schema(
    [
        ("problem_id", pa.string()),
        ("sample", pa.int32()),
        ("correct", pa.bool_()),
        ("extracted", pa.string()),
        ("boxed", pa.string()),
        ("status", pa.string()),
        ("response_tokens", pa.int32()),
        ("truncated", pa.bool_()),
        ("answer", pa.string()),
    ]
)
# Two programs are hardly ever the same: there is no vote.
CODE_SCHEMA = SCHEMA.remove(SCHEMA.get_field_index("boxed"))
BATCH_RESPONSES = 4096
BATCH_CHARACTERS = 1 << 25

Row = dict[str, Any]


@command
def main() -> None:
    """Read the command line, score, write and report."""
    options = _parse()
    start = time.monotonic()
    _check_output(options.out, options.generations)
    settings = Options(
        options.workers, options.timeout, options.memory_mb, options.tests, options.unsandboxed
    )
    generations = Generations(options.generations, gold_for(options.verifier, settings))
    total = sum(1 for _ in generations)  # whatever is wrong with the file is found here
    count: Counter[str] = Counter()
    with open_verifier(options.verifier, settings) as verifier:
        made_from = _made_from(options, generations, verifier)
        schema = CODE_SCHEMA if options.verifier == "code" else SCHEMA
        with _writer(options.out, schema, made_from) as write:
            progress = _Progress(total)
            for batch in _batches(generations):
                verdicts = verifier.check(batch, progress)
                write(_rows(batch, verdicts, options.verifier))
                count += _counts(batch, verdicts)
                progress.before += len(batch)
    print(_summary(total, count, time.monotonic() - start))


def _made_from(
    options: argparse.Namespace, generations: Generations, verifier: Verifier
) -> dict[str, Any]:
    return {
        "generations_sha256": sha256_of(options.generations),
        "generations": generations.made_from,
        "verifier": {"name": options.verifier, "version": verifier.version},
        "environment": verifier.environment,
        **({"limits": verifier.limits} if verifier.limits else {}),
    }


def _batches(generations: Generations) -> Iterator[list[Generation]]:
    batch: list[Generation] = []
    characters = 0
    for generation in generations:
        batch.append(generation)
        characters += len(generation.response)
        if len(batch) == BATCH_RESPONSES or characters >= BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def _rows(
    generations: Sequence[Generation], verdicts: Sequence[Verdict], verifier: str
) -> list[Row]:
    return [
        {
            **generation._asdict(),
            **verdict._asdict(),
            "boxed": verdict.extracted
            if verifier == "choice"
            else boxed_answer(generation.response),
        }
        for generation, verdict in zip(generations, verdicts, strict=True)
    ]


@contextmanager
def _writer(
    path: Path, schema: pa.Schema, made_from: dict[str, Any]
) -> Iterator[Callable[[list[Row]], None]]:
    """Give a function that appends rows; ``made_from`` goes into Parquet files only."""
    if path.suffix == ".parquet":
        with parquet_writer(path, schema, made_from) as append:
            yield lambda rows: append(pa.Table.from_pylist(rows, schema=schema))
        return
    with atomic_path(path) as temporary, temporary.open("w", encoding="utf-8") as file:
        yield lambda rows: file.writelines(
            json.dumps({name: row[name] for name in schema.names}) + "\n" for row in rows
        )


def _counts(generations: Sequence[Generation], verdicts: Sequence[Verdict]) -> Counter[str]:
    """Count statuses, correct responses, and where the file itself has verdicts, which differ."""
    claims = [
        generation.claimed != verdict.correct
        for generation, verdict in zip(generations, verdicts, strict=True)
        if generation.claimed is not None
    ]
    count = Counter(verdict.status for verdict in verdicts)
    count["correct"] = sum(verdict.correct for verdict in verdicts)
    count["claimed"], count["differ"] = len(claims), sum(claims)
    return count


class _Progress:
    """Says every five seconds how far the work is, nothing if it is done sooner.

    Called with the responses that are finished since ``before`` of all ``total`` were.
    """

    def __init__(self, total: int, interval: float = 5.0) -> None:
        self.total, self.interval, self.before = total, interval, 0
        self.start = self.last = time.monotonic()

    def __call__(self, done: int, _: int) -> None:
        now, done = time.monotonic(), self.before + done
        if now - self.last >= self.interval and done < self.total:
            self.last = now
            left = (now - self.start) / done * (self.total - done)
            print(
                f"scored {done} of {self.total}, about {left:.0f} s left",
                file=sys.stderr,
                flush=True,
            )


def _summary(total: int, count: Counter[str], seconds: float) -> str:
    failed = f", {count['failed']} failed" if count["failed"] else ""
    claimed = f"; {count['differ']} of {count['claimed']} verdicts in the file differ"
    return (
        f"{total} scored, {count['correct']} correct, "
        f"{count['unparsed']} unparsed, {count['timeout']} timed out{failed}, {seconds:.1f} s"
        f"{claimed if count['claimed'] else ''}"
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
        description=__doc__.replace("{columns}", columns).replace("{held_out}", HELD_OUT),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--generations", type=Path, required=True, help=".parquet or .jsonl")
    parser.add_argument("--out", type=Path, required=True, help="scores, .parquet or .jsonl")
    parser.add_argument(
        "--verifier",
        choices=VERIFIERS,
        default="math_verify",
        help="; ".join(f"{name}: {meaning}" for name, meaning in VERIFIERS.items()),
    )
    parser.add_argument(
        "--workers",
        type=_at_least(int, 1),
        help="processes of math_verify and code (default: one per processor); others need none",
    )
    add = parser.add_argument_group("options of math_verify and code").add_argument
    add(
        "--timeout",
        type=_at_least(float, 0.1),
        metavar="SECONDS",
        help=f"limit of one response (default {SECONDS:g}), or of the processor time of one test "
        "of a program (default 6)",
    )
    add(
        "--memory-mb",
        type=_at_least(int, 256),
        metavar="M",
        help=f"limit of a process (default for math_verify {MEMORY_MB})",
    )
    code = parser.add_argument_group("options of code")
    code.add_argument("--tests", type=Path, help=f"the benchmark's problems, {HELD_OUT}")
    code.add_argument(
        "--unsandboxed",
        action="store_true",
        help="run programs that a model wrote with all rights of yours",
    )
    options = parser.parse_args()
    for name, verifiers in OPTIONS.items():
        if getattr(options, name) and options.verifier not in verifiers:
            option = name.replace("_", "-")
            parser.error(f"argument --{option}: only with --verifier {' or '.join(verifiers)}")
    return options


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
