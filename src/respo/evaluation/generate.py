"""Sample responses of a checkpoint to the prompts of a benchmark.

The random numbers of a response derive from the seed, the problem's id and the sample's number
alone, so any part of a benchmark can be sampled again with the same result. Only what is missing is
sampled: responses that are in the output, or in the folder `.shards` beside it, are taken over if
they are of the same weights, prompt, sampling, engine and versions. So a job that was killed
continues, more samples or problems cost only the new ones, and rows deleted from the output are
made anew. What other settings have made stays in `.shards`: that of the latest two, and of the last
day; delete the folder to be rid of it. With --train, weights that are not those that the training
wrote are refused.

An engine that gives no sign of life for --silent-minutes (the first may take two hours) hangs: what
it was doing is written to standard error after the line `Timeout (...)!`, and the job ends with
exit code 1. The next start continues.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, product
from pathlib import Path

import pyarrow as pa

from respo.cli import UserError, command
from respo.environment import environment
from respo.evaluation import shards
from respo.evaluation.engines import Engine, Request, Response, Sampling
from respo.evaluation.problems import HELD_OUT, encode, read_problems
from respo.evaluation.trained import anew, checkpoint_hash, read_train
from respo.evaluation.watchdog import end_if_silent
from respo.files import sha256_of
from respo.parquet import parquet_made_from, parquet_writer
from respo.weight_files import check_sums, policy_hash

PROGRESS_SECONDS = 5.0
# Each step of vLLM is a sign of life; of the local engine hundreds of responses, which take longer.
# What hangs in a worker of vLLM, vLLM tells of itself after 5 minutes, and kills its workers.
SILENT_MINUTES = {"local": 240.0, "vllm": 30.0}
SCHEMA = pa.schema(
    [
        ("problem_id", pa.string()),
        ("sample", pa.int32()),
        ("prompt", pa.string()),
        ("answer", pa.string()),
        ("response", pa.string()),
        ("response_tokens", pa.int32()),
        ("truncated", pa.bool_()),
    ]
)
# Rows that are written at a time, as one row group: long responses are not held twice.
BATCH_ROWS = 1024
THINKING = {"none": None, "true": True, "false": False}
DTYPES = ("bfloat16", "float16", "float32")
# Options that one engine alone has.
OWN = {"local": ("device",), "vllm": ("thinking", "dtype", "tensor_parallel")}


@command
def main() -> None:
    """Parse the command line and write the responses."""
    options = _options()
    checkpoint_sha256 = _checked_hash(options.checkpoint, options.train, options.update)
    problems = read_problems(options.benchmark)
    engine = _open(options)
    prompts = encode(
        options.benchmark,
        problems,
        engine,
        options.max_prompt_tokens,
        options.max_response_tokens,
    )
    sampling = {
        name: getattr(options, name)
        for name in ("temperature", "top_p", "max_response_tokens", "seed")
    }
    made_from = {
        "checkpoint_sha256": checkpoint_sha256,
        "benchmark_sha256": sha256_of(options.benchmark),
        "benchmark": parquet_made_from(options.benchmark),
        "sampling": {"samples": options.samples, **sampling},
        **engine.made_from,
        "environment": environment("torch") | engine.versions,
    }
    texts = {problem["id"]: problem["prompt"] for problem in problems}
    kept = shards.Shards(options.out.parent / ".shards", made_from, texts)
    kept.adopt(options.out)
    with end_if_silent(60 * options.silent_minutes) as alive:
        responses = generate(
            engine, texts, prompts, options.samples, Sampling(**sampling), kept, alive
        )
    if kept.earlier:
        made_from["earlier"] = kept.earlier
    with parquet_writer(options.out, SCHEMA, made_from) as write:
        for table in _tables(problems, options.samples, responses):
            write(table)
    if old := kept.finish(options.out):
        print(f"responses of older settings ({old}) deleted from {kept.root}", file=sys.stderr)


def generate(
    engine: Engine,
    problems: Iterable[str],
    prompts: list[list[int]],
    samples: int,
    sampling: Sampling,
    kept: shards.Shards,
    alive: Callable[[], None] = lambda: None,
) -> dict[tuple[str, int], Response]:
    """Return ``samples`` responses to each problem.

    Args:
        engine: samples them.
        problems: ids.
        prompts: of the problems, as token ids.
        samples: K.
        sampling: how they are drawn.
        kept: has those that are there already.
        alive: called whenever the engine shows that it works.
    """
    responses = {response.key: response for response in kept.read(samples)}
    missing = [
        request
        for problem, prompt in zip(problems, prompts, strict=True)
        for number in range(samples)
        if (request := Request(problem, number, prompt)).key not in responses
    ]
    wanted = samples * len(prompts)
    others = len(kept.others())
    if responses or others:
        aside = f"; those of other settings ({others}) stay in {kept.root}" if others else ""
        print(f"{len(responses)}/{wanted} responses are there already{aside}", file=sys.stderr)
    sampled = engine.sample(missing, sampling)
    progress = _Progress(wanted, len(responses))
    try:
        for finished in sampled:
            alive()
            responses |= {response.key: response for response in finished}
            kept.add(finished)
            progress.report(finished)
    except UserError:
        kept.flush()
        raise
    return responses


def _tables(
    problems: list[dict[str, str]], samples: int, responses: Mapping[tuple[str, int], Response]
) -> Iterator[pa.Table]:
    """Yield the rows of the output, by problem and sample."""
    wanted = product(problems, range(samples))
    while some := list(islice(wanted, BATCH_ROWS)):
        rows = [
            {
                "prompt": problem["prompt"],
                "answer": problem["answer"],
                **responses[problem["id"], number]._asdict(),
            }
            for problem, number in some
        ]
        yield pa.Table.from_pylist(rows, SCHEMA)


class _Progress:
    """A line on standard error every few seconds, none for short work."""

    def __init__(self, total: int, there: int):
        self.total, self.there = total, there
        self.sampled = self.tokens = 0
        self.started = self.last = time.monotonic()

    def report(self, finished: list[Response]) -> None:
        self.sampled += len(finished)
        self.tokens += sum(response.response_tokens for response in finished)
        now = time.monotonic()
        # The longer the work, the rarer the lines; once a minute at least.
        elapsed = now - self.started
        if now - self.last < PROGRESS_SECONDS * min(12, 1 + elapsed / 60):
            return
        self.last = now
        done = self.there + self.sampled
        line = f"{done}/{self.total} responses"
        if self.sampled:
            left = elapsed * (self.total - done) / self.sampled
            line += f"  {self.tokens / elapsed:,.0f} tokens/s  {left:.0f} s left"
        print(line, file=sys.stderr, flush=True)


def _open(options: argparse.Namespace) -> Engine:
    """Make the engine; each imports much that the other does not need."""
    if options.engine == "local":
        from respo.evaluation.engines import local

        return local.load(options.checkpoint, options.device or "cpu")
    from respo.evaluation.engines.vllm import VllmEngine

    return VllmEngine(
        options.checkpoint,
        thinking=options.thinking,
        dtype=options.dtype or "bfloat16",
        tensor_parallel=options.tensor_parallel or 1,
    )


def _checked_hash(checkpoint: Path, train: Path | None, update: str | None) -> str:
    """Hash the weights; refuse those that the training has not written after this update."""
    if train is None:
        return policy_hash(checkpoint)
    expected = checkpoint_hash(train, read_train(train), update or checkpoint.absolute().name)
    try:
        found = policy_hash(checkpoint)
    except UserError:
        raise UserError(f"{checkpoint}: the checkpoint is missing; {anew(train)}") from None
    if found != expected:
        raise UserError(
            f"{checkpoint}: the checkpoint is not the one that {train} names: it was changed or "
            f"damaged after training; {anew(train)}"
        )
    try:
        check_sums(checkpoint)
    except UserError as error:
        raise UserError(f"{error}; {anew(train)}") from None
    return found


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m respo.evaluation.generate", description=__doc__
    )
    parser.add_argument("--engine", choices=OWN, default="local")
    parser.add_argument("--checkpoint", type=Path, required=True, help="Hugging Face folder")
    parser.add_argument(
        "--train",
        type=Path,
        help="train.json of the run: names the hash of each checkpoint",
    )
    parser.add_argument("--update", help="of the checkpoint; default: its folder's name")
    parser.add_argument(
        "--benchmark", type=Path, required=True, help=f"rows of id, prompt, answer: {HELD_OUT}"
    )
    parser.add_argument("--samples", type=_positive, required=True, help="responses per problem")
    parser.add_argument("--temperature", type=_temperature, required=True)
    parser.add_argument("--top-p", type=_top_p, required=True, help="1 for all tokens")
    parser.add_argument("--max-response-tokens", type=_positive, required=True)
    parser.add_argument(
        "--max-prompt-tokens", type=_positive, help="longer prompts are an error; default: no limit"
    )
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--device", help="local: cpu (default), cuda or cuda:1")
    parser.add_argument(
        "--thinking",
        choices=THINKING,
        help="vllm: enable_thinking of the chat template; none (default) leaves it to the template",
    )
    parser.add_argument("--dtype", choices=DTYPES, help="vllm: precision, default bfloat16")
    parser.add_argument("--tensor-parallel", type=_positive, help="vllm: GPUs, default 1")
    parser.add_argument(
        "--silent-minutes",
        type=_minutes,
        help="see above; default: "
        + ", ".join(f"{minutes:g} for {name}" for name, minutes in SILENT_MINUTES.items()),
    )
    parser.add_argument("--out", type=Path, required=True, help="generations.parquet to write")
    options = parser.parse_args()
    if options.out.suffix != ".parquet":
        parser.error(f"argument --out: {options.out}: the name must end in .parquet")
    options.thinking = THINKING[options.thinking or "none"]
    options.silent_minutes = options.silent_minutes or SILENT_MINUTES[options.engine]
    for engine, names in OWN.items():
        for name in names:
            if engine != options.engine and getattr(options, name) is not None:
                parser.error(f"--{name.replace('_', '-')}: only with --engine {engine}")
    return options


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be 1 or more")
    return value


def _temperature(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text}: must be greater than 0")
    return value


def _minutes(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1e6:
        raise argparse.ArgumentTypeError(f"{text}: must be greater than 0 and at most 1000000")
    return value


def _top_p(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text}: must be greater than 0 and at most 1")
    return value


if __name__ == "__main__":
    main()
