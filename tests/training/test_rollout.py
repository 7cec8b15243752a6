from collections.abc import Callable

import numpy as np
import pytest
import torch

from respo.config.schema import RunConfig
from respo.policy import Policy, token_log_probs
from respo.training.local import responses as responses_module
from respo.training.local.prompts import Prompts
from respo.training.local.responses import Responses
from respo.training.local.rollout import collect, sampling_uniforms

# What does not depend on the kind of network is tested with one kind.
DENSE = pytest.mark.parametrize("initial", [0], indirect=True, ids=["dense"])
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


def test_the_first_round_has_the_numbers_of_a_rollout_batch_without_rounds() -> None:
    # What it was before there were rounds: a change here changes every run.
    generator = np.random.Generator(np.random.Philox(np.random.SeedSequence((7, 1, 3))))
    expected = generator.random((4, 5), dtype=np.float32)
    assert np.array_equal(sampling_uniforms(7, 3, 0, 4, 5).numpy(), expected)


# --- length penalty -------------------------------------------------------------------------------


@DENSE
def test_the_length_penalty_follows_the_configuration(
    policy: Policy, prompts: Prompts, make_config: MakeConfig
) -> None:
    plain = collect(policy, prompts, make_config(), 0, 0).responses
    config = make_config(overlong_buffer=16, overlong_factor=0.5)
    penalised = collect(policy, prompts, config, 0, 0).responses
    assert torch.equal(penalised.ids_BT, plain.ids_BT)
    # Limit 24: nothing up to 8 tokens, half a point at 24.
    over_B = (plain.response_length_B - 8).clamp(min=0) / 16
    assert 0 < (over_B > 0).double().mean() < 1
    torch.testing.assert_close(penalised.reward_B, plain.reward_B - 0.5 * over_B.double())
    # Groups with equal answers of different length have something to learn now.
    assert penalised.equal_reward_B.sum() < plain.equal_reward_B.sum()


# --- dynamic sampling -----------------------------------------------------------------------------


def groups(responses: Responses) -> list[list[list[int]]]:
    """The tokens of each response of each group, padding left out, in order."""
    rows = [
        row[:length]
        for row, length in zip(responses.ids_BT.tolist(), responses.length_B.tolist(), strict=True)
    ]
    return [rows[start : start + 4] for start in range(0, len(rows), 4)]


def group_has_spread(responses: Responses) -> list[bool]:
    spread = (~responses.equal_reward_B).view(-1, 4)
    assert (spread == spread[:, :1]).all()
    return spread[:, 0].tolist()


@DENSE
def test_groups_without_spread_are_replaced_by_following_prompts(
    policy: Policy, prompts: Prompts, make_config: MakeConfig
) -> None:
    plain = collect(policy, prompts, make_config(), 0, 32)
    rollout = collect(policy, prompts, make_config(dynamic_sampling=9), 0, 32)
    assert (plain.prompts, len(groups(plain.responses))) == (16, 16)
    assert all(group_has_spread(rollout.responses))
    assert len(groups(rollout.responses)) == 16
    assert rollout.prompts > 16
    assert rollout.tokens > rollout.responses.response_length_B.sum()
    # The first round is what a rollout batch without dynamic sampling is.
    kept = [
        group
        for group, spread in zip(
            groups(plain.responses), group_has_spread(plain.responses), strict=True
        )
        if spread
    ]
    assert 0 < len(kept) < 16
    assert groups(rollout.responses)[: len(kept)] == kept
    # Prompts come in the order of the stream, each at most once: a subsequence of it.
    stream = iter(prompts.take(32, rollout.prompts, 1))
    for ids, *_ in groups(rollout.responses):
        assert any(ids[: len(prompt.ids)] == prompt.ids for prompt in stream)


@DENSE
def test_rounds_that_run_out_are_filled_with_dropped_groups_in_order(
    policy: Policy, prompts: Prompts, make_config: MakeConfig
) -> None:
    plain = collect(policy, prompts, make_config(), 0, 0).responses
    rollout = collect(policy, prompts, make_config(dynamic_sampling=1), 0, 0)
    assert rollout.prompts == 16
    spread = group_has_spread(plain)
    order = sorted(range(16), key=lambda group: not spread[group])
    assert order != list(range(16))
    assert groups(rollout.responses) == [groups(plain)[group] for group in order]
    assert not rollout.responses.advantage_B[-4:].any()


@DENSE
def test_prompts_that_never_spread_are_no_endless_loop(
    policy: Policy, prompts: Prompts, make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        responses_module, "training_rewards", lambda verifier, pairs: [1.0 for _ in pairs]
    )
    plain = collect(policy, prompts, make_config(), 0, 0)
    rollout = collect(policy, prompts, make_config(dynamic_sampling=3), 0, 0)
    assert rollout.prompts == 3 * 16
    assert groups(rollout.responses) == groups(plain.responses)


@DENSE
def test_nothing_is_sampled_again_where_all_groups_spread(
    policy: Policy, prompts: Prompts, make_config: MakeConfig
) -> None:
    # With a penalty on every token nearly any two responses differ in reward.
    options = {"overlong_buffer": 24, "rollouts_per_prompt": 8}
    plain = collect(policy, prompts, make_config(**options), 0, 0)
    assert not plain.responses.equal_reward_B.any()
    rollout = collect(policy, prompts, make_config(**options, dynamic_sampling=3), 0, 0)
    assert rollout.prompts == 16
    narrowed = plain.responses.select(slice(None))
    for name, tensor in narrowed.tensors().items():
        assert torch.equal(rollout.responses.tensors()[name], tensor), name


def test_every_round_has_numbers_of_its_own(
    policy: Policy, prompts: Prompts, make_config: MakeConfig
) -> None:
    config = make_config(dynamic_sampling=4)
    first, again = (collect(policy, prompts, config, 1, 8) for _ in range(2))
    for name, tensor in first.responses.tensors().items():
        assert torch.equal(tensor, again.responses.tensors()[name]), name
    assert (first.prompts, first.tokens) == (again.prompts, again.tokens)
