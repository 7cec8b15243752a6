"""Rollout batches: the responses that N consecutive updates learn from, all of one pi_old."""

import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from respo.config.schema import RunConfig
from respo.policy import Policy, sample
from respo.training.local.prompts import Prompts
from respo.training.local.responses import Responses, assemble


@dataclass(frozen=True)
class Rollout:
    """A rollout batch: its number (from 0), its responses and the wall seconds it took."""

    index: int
    responses: Responses
    seconds: float

    def mini_batch(self, position: int, size: int) -> Responses:
        """Return the mini-batch at ``position`` (from 0) of ``size`` responses."""
        return self.responses.select(slice(position * size, (position + 1) * size))


def collect(policy: Policy, prompts: Prompts, config: RunConfig, index: int) -> Rollout:
    """Sample and score rollout batch ``index``: N*M prompts, G responses each.

    Prompts and randomness follow from (seed, index) alone: a continued run needs no generator.
    """
    start = time.perf_counter()
    training = config.training
    count = config.staleness * training.mini_batch
    batch = prompts.take(index * count, count, config.seed)
    limit = config.model.max_response_tokens
    uniform_BT = sampling_uniforms(
        config.seed, index, count * training.rollouts_per_prompt, limit
    ).to(policy.device)
    samples = sample(
        policy,
        [prompt.ids for prompt in batch],
        training.rollouts_per_prompt,
        limit,
        uniform_BT,
        temperature=training.temperature,
    )
    responses = assemble(policy, batch, samples, training.rollouts_per_prompt)
    return Rollout(index, responses, time.perf_counter() - start)


def sampling_uniforms(seed: int, index: int, rows: int, tokens: int) -> Tensor:
    """Return the uniform numbers in [0, 1) that rollout batch ``index`` is sampled with."""
    sequence = np.random.SeedSequence((seed, 1, index))
    generator = np.random.Generator(np.random.Philox(sequence))
    return torch.from_numpy(generator.random((rows, tokens), dtype=np.float32))
