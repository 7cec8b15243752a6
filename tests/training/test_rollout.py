from collections.abc import Callable

import pytest
import torch

from respo.config.schema import RunConfig
from respo.policy import Policy, token_log_probs
from respo.training.local.prompts import Prompts
from respo.training.local.rollout import collect, sampling_uniforms

MakeConfig = Callable[..., RunConfig]


def test_a_rollout_batch_follows_from_seed_and_index(
    policy: Policy, prompts: Prompts, make_config: MakeConfig
) -> None:
    config = make_config()
    first, again, other = (
        collect(policy, prompts, config, index, 16 * index) for index in (1, 1, 2)
    )
    for name, tensor in first.responses.tensors().items():
        assert torch.equal(tensor, getattr(again.responses, name)), name
    assert not torch.equal(first.responses.ids_BT[:, :4], other.responses.ids_BT[:, :4])


def test_uniforms_differ_by_seed_and_index() -> None:
    draws = [sampling_uniforms(*key, 4, 5) for key in ((1, 0, 0), (1, 1, 0), (2, 0, 0), (1, 0, 1))]
    assert all(draw.shape == (4, 5) and 0 <= draw.min() <= draw.max() < 1 for draw in draws)
    assert not any(torch.equal(draws[0], other) for other in draws[1:])


def test_prompts_come_in_groups_and_in_order(
    policy: Policy, prompts: Prompts, make_config: MakeConfig
) -> None:
    config = make_config()  # N*M = 16 prompts, G = 4, of 40 rows
    rollout = collect(policy, prompts, config, 2, 32)  # prompts 32 to 47: on into the next epoch
    expected = prompts.take(32, 16, config.seed)
    assert len(rollout.responses.ids_BT) == 64
    for row, ids in enumerate(rollout.responses.ids_BT.tolist()):
        prompt = expected[row // 4]
        assert ids[: len(prompt.ids)] == prompt.ids
    mini_batch = rollout.mini_batch(3, 16)
    assert torch.equal(mini_batch.reward_B, rollout.responses.reward_B[48:])


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_old_log_probs_are_those_of_the_sampling_policy(
    policy: Policy, prompts: Prompts, make_config: MakeConfig, temperature: float
) -> None:
    responses = collect(policy, prompts, make_config(temperature=temperature), 0, 0).responses
    log_prob_BT, _ = token_log_probs(policy, responses.ids_BT, temperature)
    difference = (log_prob_BT - responses.old_log_prob_BT)[responses.mask_BT]
    assert difference.abs().max() < 1e-4
    assert responses.mask_BT.sum(1).tolist() == responses.response_length_B.tolist()
