"""Rollout batches: the responses that N consecutive updates learn from, all of one pi_old."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from respo.config.schema import RunConfig
from respo.policy import Policy, sample
from respo.rewards import overlong_penalty
from respo.training.local.prompts import Prompt, Prompts
from respo.training.local.replay import with_trainer_routes
from respo.training.local.responses import Responses, assemble, concatenate


@dataclass(frozen=True)
class Rollout:
    """A rollout batch.

    Attributes:
        index: its number, from 0.
        prompts: how many prompts were sampled for it; more than it holds where dynamic sampling
            replaced groups.
        tokens: response tokens sampled for it.
        seconds: wall time it took.
        responses: what is learned from.
    """

    index: int
    prompts: int
    tokens: int
    seconds: float
    responses: Responses

    def mini_batch(self, position: int, size: int) -> Responses:
        """Return the mini-batch at ``position`` (from 0) of ``size`` responses."""
        return self.responses.select(slice(position * size, (position + 1) * size))


def collect(
    policy: Policy,
    prompts: Prompts,
    config: RunConfig,
    index: int,
    cursor: int,
    between_rounds: Callable[[], None] = lambda: None,
) -> Rollout:
    """Sample and score rollout batch ``index``: N*M prompts, G responses each.

    Everything follows from the weights and (seed, index, cursor): a continued run needs no
    generator. With dynamic sampling (DAPO, Section 3.2) groups whose rewards have no spread are
    replaced by groups of the following prompts, in rounds, each of as many prompts as are missing.
    What is still missing after the last round is made up of the groups without spread, in the order
    in which they were sampled.

    Args:
        policy: what to sample from.
        prompts: the training set.
        config: of the run.
        index: number of the rollout batch, from 0.
        cursor: position in the stream of prompts at which to begin.
        between_rounds: called before each further round of dynamic sampling; may raise.

    Raises:
        UserError: the sampler's log-probabilities are not the policy's.
    """
    start = time.perf_counter()
    training = config.training
    group = training.rollouts_per_prompt
    count = config.staleness * training.mini_batch
    rounds: list[Responses] = []
    sampled, missing = 0, count
    while missing and len(rounds) < max(1, training.dynamic_sampling):
        if rounds:
            between_rounds()
        batch = prompts.take(cursor + sampled, missing, config.seed)
        rounds.append(_sample_round(policy, batch, config, index, len(rounds)))
        sampled += missing
        if training.dynamic_sampling:
            missing -= int((~rounds[-1].equal_reward_B).sum()) // group
    responses = concatenate(rounds, policy.tokenizer.pad_id)
    tokens = int(responses.response_length_B.sum())
    if training.dynamic_sampling:
        # Stable: groups stay together and in order.
        order_B = responses.equal_reward_B.int().argsort(stable=True)
        responses = responses.select(order_B[: count * group])
    if training.routing_replay == "R2":
        responses = with_trainer_routes(policy, responses, training.temperature)
    return Rollout(index, sampled, tokens, time.perf_counter() - start, responses)


def sampling_uniforms(seed: int, index: int, number: int, rows: int, tokens: int) -> Tensor:
    """Return the uniform numbers in [0, 1) for round ``number`` of rollout batch ``index``."""
    sequence = np.random.SeedSequence((seed, 1, index, number))
    generator = np.random.Generator(np.random.Philox(sequence))
    return torch.from_numpy(generator.random((rows, tokens), dtype=np.float32))


def _sample_round(
    policy: Policy, batch: list[Prompt], config: RunConfig, index: int, number: int
) -> Responses:
    training = config.training
    group, limit = training.rollouts_per_prompt, config.model.max_response_tokens
    uniform_BT = sampling_uniforms(config.seed, index, number, len(batch) * group, limit)
    samples = sample(
        policy,
        [prompt.ids for prompt in batch],
        group,
        limit,
        uniform_BT.to(policy.device),
        temperature=training.temperature,
        record_routes=training.routing_replay == "R3",
    )
    return assemble(policy, batch, samples, group, _length_penalty(config), training.reward)


def _length_penalty(config: RunConfig) -> Callable[[int], float] | None:
    training = config.training
    if not training.overlong_buffer:
        return None
    return partial(
        overlong_penalty,
        max_tokens=config.model.max_response_tokens,
        buffer=training.overlong_buffer,
        factor=training.overlong_factor,
    )
