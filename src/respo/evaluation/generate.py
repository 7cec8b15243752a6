"""Sample responses of a checkpoint to the prompts of a benchmark.

The random numbers of a response derive from the seed, the problem's id and the sample's number
alone, so any part of a benchmark can be sampled again with the same result. With --train, weights
that are not those that the training wrote are refused.
"""

import argparse
import hashlib
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from respo.cli import UserError, command
from respo.evaluation.trained import anew, checkpoint_hash, read_train
from respo.files import environment, read_parquet, sha256_of, write_parquet
from respo.policy import Policy, load_policy, policy_hash, sample

# Responses sampled at a time: enough to keep a core or a GPU busy, little enough for any memory.
BATCH_ROWS = 512
PROGRESS_SECONDS = 5.0
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


@command
def main() -> None:
    """Parse the command line and write the responses."""
    parser = argparse.ArgumentParser(
        prog="python -m respo.evaluation.generate", description=__doc__
    )
    parser.add_argument("--checkpoint", type=Path, required=True, help="Hugging Face folder")
    parser.add_argument(
        "--train",
        type=Path,
        help="train.json of the run: names the hash of each checkpoint by its folder's name",
    )
    parser.add_argument("--benchmark", type=Path, required=True, help="rows of id, prompt, answer")
    parser.add_argument("--samples", type=_positive, required=True, help="responses per problem")
    parser.add_argument("--temperature", type=_temperature, required=True)
    parser.add_argument("--top-p", type=_top_p, required=True, help="1 for all tokens")
    parser.add_argument("--max-response-tokens", type=_positive, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--device", default="cpu", help="cpu, cuda or cuda:1")
    parser.add_argument("--out", type=Path, required=True, help="generations.parquet to write")
    options = parser.parse_args()

    # One process per core is faster than two threads in one.
    torch.set_num_threads(1)
    if options.train:
        _check_untouched(options.checkpoint, options.train)
    problems = read_problems(options.benchmark)
    policy = load_policy(options.checkpoint, _device(options.device))
    prompts = _encode(options, policy, problems)
    sampling = {
        name: getattr(options, name)
        for name in ("samples", "temperature", "top_p", "max_response_tokens", "seed")
    }
    made_from = {
        "checkpoint_sha256": policy_hash(options.checkpoint),
        "benchmark_sha256": sha256_of(options.benchmark),
        "sampling": sampling,
        "device": options.device,
        "environment": environment("torch"),
    }
    write_parquet(options.out, generate(policy, problems, prompts, **sampling), made_from)


def generate(
    policy: Policy,
    problems: list[dict[str, str]],
    prompts: list[list[int]],
    *,
    samples: int,
    temperature: float,
    top_p: float,
    max_response_tokens: int,
    seed: int,
) -> pa.Table:
    """Return ``samples`` responses to each problem, in the order of the problems.

    ``prompts`` are the problems' prompts as token ids.
    """
    responses: dict[tuple[int, int], dict[str, Any]] = {}
    progress = _Progress(len(problems) * samples)
    group = min(samples, BATCH_ROWS)
    # Prompts of about the same length share a batch, so that little is padded.
    order = sorted(range(len(problems)), key=lambda i: len(prompts[i]))
    per_batch = BATCH_ROWS // group
    for first_sample in range(0, samples, group):
        numbers = range(first_sample, min(first_sample + group, samples))
        for start in range(0, len(order), per_batch):
            batch = order[start : start + per_batch]
            rows = [(i, number) for i in batch for number in numbers]
            uniform_BT = torch.stack(
                [uniforms(seed, problems[i]["id"], n, max_response_tokens) for i, n in rows]
            )
            drawn = sample(
                policy,
                [prompts[i] for i in batch],
                len(numbers),
                max_response_tokens,
                uniform_BT,
                temperature=temperature,
                top_p=top_p,
            )
            ids, lengths = drawn.tokens_BT.tolist(), drawn.length_B.tolist()
            truncated = drawn.truncated_B.tolist()
            for row, (i, number) in enumerate(rows):
                responses[i, number] = {
                    "problem_id": problems[i]["id"],
                    "sample": number,
                    "prompt": problems[i]["prompt"],
                    "answer": problems[i]["answer"],
                    "response": policy.tokenizer.decode(ids[row][: lengths[row]]),
                    "response_tokens": lengths[row],
                    "truncated": truncated[row],
                }
            progress.report(len(responses))
    return pa.Table.from_pylist([responses[key] for key in sorted(responses)], SCHEMA)


def uniforms(seed: int, problem_id: str, number: int, count: int) -> Tensor:
    """Random numbers in [0, 1), float64 [count], that depend on nothing but the arguments."""
    # The id comes last: whatever it contains, two different triples make different texts.
    text = f"{seed} {number} {problem_id}"
    key = int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")
    return torch.from_numpy(np.random.Generator(np.random.Philox(key=key)).random(count))


def read_problems(path: Path) -> list[dict[str, str]]:
    """Read the rows of a benchmark.

    Raises:
        UserError: the file is damaged or empty, a value is missing or an id stands twice.
    """
    table = read_parquet(path, ["id", "prompt", "answer"])
    problems = table.to_pylist()
    if not problems:
        raise UserError(f"{path}: there are no problems in it; make it anew")
    seen: set[str] = set()
    for row, problem in enumerate(problems):
        for column, value in problem.items():
            if not isinstance(value, str):
                raise UserError(f"{path}: row {row}: {column} is {value!r}; write a text")
        if problem["id"] in seen:
            raise UserError(f"{path}: row {row}: id {problem['id']!r} stands twice; make it unique")
        seen.add(problem["id"])
    return problems


class _Progress:
    """A line on standard error every few seconds, none for short work."""

    def __init__(self, total: int):
        self.total = total
        self.started = self.last = time.monotonic()

    def report(self, done: int) -> None:
        now = time.monotonic()
        if now - self.last < PROGRESS_SECONDS:
            return
        self.last = now
        left = (now - self.started) * (self.total - done) / done
        print(f"{done}/{self.total} responses  {left:.0f} s left", file=sys.stderr, flush=True)


def _check_untouched(checkpoint: Path, train: Path) -> None:
    """Refuse weights that are not those that the training wrote after this update."""
    expected = checkpoint_hash(train, read_train(train), checkpoint.absolute().name)
    try:
        untouched = policy_hash(checkpoint) == expected
    except UserError:
        raise UserError(f"{checkpoint}: the checkpoint is missing; {anew(train)}") from None
    if not untouched:
        raise UserError(
            f"{checkpoint}: the checkpoint is not the one that {train} names: it was changed or "
            f"damaged after training; {anew(train)}"
        )


def _encode(
    options: argparse.Namespace, policy: Policy, problems: list[dict[str, str]]
) -> list[list[int]]:
    """Token ids of the prompts, each checked to leave room for a response."""
    limit, prompts = policy.config["max_position_embeddings"], []
    for problem in problems:
        where = f"{options.benchmark}: problem {problem['id']!r}"
        try:
            prompt = policy.tokenizer.encode(problem["prompt"])
        except UserError as error:
            raise UserError(f"{where}: {error}") from None
        if not prompt:
            raise UserError(f"{where}: the prompt is empty")
        if len(prompt) + options.max_response_tokens > limit:
            raise UserError(
                f"{where}: {len(prompt)} tokens of prompt and {options.max_response_tokens} of "
                f"response are more than the {limit} positions of {options.checkpoint}; "
                "lower max_response_tokens"
            )
        prompts.append(prompt)
    return prompts


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # torch without CUDA asserts
        reason = str(error).splitlines()[0]
        raise UserError(f"device {name!r}: {reason}. Choose cpu or another device.") from None
    return device


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


def _top_p(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"{text}: must be greater than 0 and at most 1")
    return value


if __name__ == "__main__":
    main()
