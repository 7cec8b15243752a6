"""The project's own sampler, for small Qwen3 policies, in float32."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from respo import policy as policy_code
from respo.cli import UserError
from respo.evaluation.engines import Request, Response, Sampling, digest, sampler_code
from respo.policy import Policy, load_policy, sample

# Responses sampled at a time: enough to keep a core or a GPU busy, little enough for any memory.
BATCH_ROWS = 512
# What a response comes from.
CODE = (Path(__file__), *Path(policy_code.__file__).parent.glob("*.py"))


class LocalEngine:
    """Samples batch by batch; prompts are text as they stand."""

    def __init__(self, policy: Policy, device: str = "cpu"):
        self.policy = policy
        self.positions: int = policy.config["max_position_embeddings"]
        self.made_from: dict[str, Any] = {
            "engine": "local",
            "device": device,
            "sampler_code": sampler_code(*CODE),
        }
        self.versions: dict[str, str] = {}

    def encode(self, prompt: str) -> list[int]:
        """See `Engine`."""
        return self.policy.tokenizer.encode(prompt)

    def sample(self, requests: list[Request], sampling: Sampling) -> Iterator[list[Response]]:
        """See `Engine`."""
        limit = sampling.max_response_tokens
        for batch in _batches(requests):
            rows = [request for group in batch for request in group]
            drawn = sample(
                self.policy,
                [group[0].prompt for group in batch],
                len(batch[0]),
                limit,
                torch.stack([uniforms(sampling.seed, *row.key, limit) for row in rows]),
                temperature=sampling.temperature,
                top_p=sampling.top_p,
            )
            ids, lengths = drawn.tokens_BT.tolist(), drawn.length_B.tolist()
            truncated = drawn.truncated_B.tolist()
            yield [
                Response(
                    *row.key,
                    self.policy.tokenizer.decode(ids[i][: lengths[i]]),
                    lengths[i],
                    truncated[i],
                )
                for i, row in enumerate(rows)
            ]


def load(checkpoint: Path, device: str) -> LocalEngine:
    """Read the checkpoint.

    Raises:
        UserError: it cannot be read, or there is no such device.
    """
    # One process per core is faster than two threads in one.
    torch.set_num_threads(1)
    return LocalEngine(load_policy(checkpoint, _device(device)), device)


def uniforms(seed: int, problem_id: str, number: int, count: int) -> Tensor:
    """Random numbers in [0, 1), float64 [count], that depend on nothing but the arguments."""
    key = int.from_bytes(digest(seed, problem_id, number)[:16], "little")
    return torch.from_numpy(np.random.Generator(np.random.Philox(key=key)).random(count))


def _batches(requests: list[Request]) -> Iterator[list[list[Request]]]:
    """Yield batches of groups of one size; a group has one prompt.

    Prompts of about the same length share a batch, so that little is padded.
    """
    groups = [
        rows[start : start + BATCH_ROWS]
        for _, of_problem in groupby(requests, key=lambda request: request.problem_id)
        for rows in [list(of_problem)]
        for start in range(0, len(rows), BATCH_ROWS)
    ]
    groups.sort(key=lambda group: (-len(group), len(group[0].prompt)))
    if not groups:
        return
    per_batch = BATCH_ROWS // len(groups[0])
    for _, of_size in groupby(groups, key=len):
        same = list(of_size)
        for start in range(0, len(same), per_batch):
            yield same[start : start + per_batch]


def _device(name: str) -> torch.device:
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:  # torch without CUDA asserts
        reason = str(error).splitlines()[0]
        raise UserError(f"device {name!r}: {reason}. Choose cpu or another device.") from None
    return device
