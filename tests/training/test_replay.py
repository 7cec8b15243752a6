"""Routing replay: the recorded experts reach the right tokens and change what they should."""

import dataclasses
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from respo.cli import UserError
from respo.config.schema import RunConfig
from respo.policy import Policy, forward, forward_with_routes
from respo.training.local.log_probs import LogProbs, fast_order, log_probs
from respo.training.local.optimizer import AdamW
from respo.training.local.prompts import Prompts
from respo.training.local.responses import Responses
from respo.training.local.rollout import collect
from respo.training.local.update import policy_update

MakeConfig = Callable[..., RunConfig]
REPLAY = pytest.mark.parametrize("replay", ["R2", "R3"])
# A mixture of four experts, two for each token.
pytestmark = pytest.mark.parametrize("initial", [4], indirect=True, ids=["moe"])


def ordered(responses: Responses) -> Responses:
    return responses.select(fast_order(responses.length_B, responses.truncated_B | True))


def run(policy: Policy, responses: Responses, **options: int) -> LogProbs:
    return log_probs(policy, responses, 1.0, learning=0, **options)  # type: ignore[arg-type]


def other_routes(responses: Responses) -> Responses:
    assert responses.routes_BTLK is not None
    return dataclasses.replace(responses, routes_BTLK=3 - responses.routes_BTLK)


def moved(policy: Policy, by: float = 0.05) -> Policy:
    """The policy some updates later, in a random direction."""
    generator = torch.Generator().manual_seed(0)
    weights = {
        name: w + by * torch.randn(w.shape, generator=generator)
        for name, w in sorted(policy.weights.items())
    }
    return dataclasses.replace(policy, weights=weights)


def difference(one_BT: Tensor, other_BT: Tensor, responses: Responses) -> Tensor:
    return (one_BT - other_BT)[responses.mask_BT].abs()


def used_routes(policy: Policy, responses: Responses, row: int) -> tuple[Tensor, Tensor]:
    """Recorded and own experts of a row at the tokens that were computed, both [T, L, K]."""
    computed = int(responses.length_B[row]) - 1
    assert responses.routes_BTLK is not None
    _, routes_LBTK = forward_with_routes(policy, responses.ids_BT[row : row + 1, :computed])
    return responses.routes_BTLK[row, :computed].long(), routes_LBTK[:, 0].transpose(0, 1)


def gradient(
    policy: Policy, responses: Responses, config: RunConfig, **options: int
) -> tuple[Tensor, dict[str, float]]:
    """Gradient and metrics of an update. With a first moment of 0, Adam's is a tenth of it."""
    optimizer = AdamW(policy, betas=(0.9, 0.999), weight_decay=0.0, clip=1e9)
    updated = policy_update(
        optimizer, responses, config, 2, on_policy=False, reference=policy, **options
    )
    return optimizer.exp_avg * 10, updated.metrics


@REPLAY
def test_routes_are_recorded_for_every_token(
    policy: Policy, prompts: Prompts, make_config: MakeConfig, replay: str
) -> None:
    responses = collect(policy, prompts, make_config(routing_replay=replay), 0, 0).responses
    assert responses.routes_BTLK is not None
    assert responses.routes_BTLK.shape == (*responses.ids_BT.shape, 1, 2)
    for row in range(len(responses.ids_BT)):
        recorded, own = used_routes(policy, responses, row)
        # Exact here: no token of this batch is a tie to rounding.
        assert torch.equal(recorded, own)
    assert collect(policy, prompts, make_config(), 0, 0).responses.routes_BTLK is None


def test_r3_at_unchanged_weights_gives_the_rollouts_log_probs(
    policy: Policy, prompts: Prompts, make_config: MakeConfig
) -> None:
    config = make_config(routing_replay="R3")
    plain = collect(policy, prompts, make_config(), 0, 0).responses
    responses = collect(policy, prompts, config, 0, 0).responses
    # Recording changes nothing: the same tokens with the same log-probabilities.
    assert torch.equal(responses.ids_BT, plain.ids_BT)
    assert torch.equal(responses.old_log_prob_BT, plain.old_log_prob_BT)
    responses = ordered(responses)
    replayed = run(policy, responses)
    # Not bit for bit: the sampler computes one token at a time from cached keys and values, and
    # its matrix products round in another order. This is that rounding and no more.
    assert difference(replayed.log_prob_BT, responses.old_log_prob_BT, responses).max() < 1e-5
    # Where both choose alike, replaying is bit for bit what the trainer does without.
    free = run(policy, dataclasses.replace(responses, routes_BTLK=None))
    assert torch.equal(replayed.log_prob_BT[responses.mask_BT], free.log_prob_BT[responses.mask_BT])


def test_r2_at_unchanged_weights_is_pi_old_bit_for_bit(
    policy: Policy, prompts: Prompts, make_config: MakeConfig
) -> None:
    responses = collect(policy, prompts, make_config(routing_replay="R2"), 0, 0).responses
    sampled = collect(policy, prompts, make_config(), 0, 0).responses
    # pi_old is the trainer's pass, equal to the sampler's but for rounding.
    mask_BT = sampled.mask_BT[:, : responses.mask_BT.shape[1]]
    assert torch.equal(responses.mask_BT, mask_BT)
    assert not torch.equal(
        responses.old_log_prob_BT, sampled.old_log_prob_BT[:, : mask_BT.shape[1]]
    )
    sampled_BT = sampled.old_log_prob_BT[:, : mask_BT.shape[1]]
    assert difference(responses.old_log_prob_BT, sampled_BT, responses).max() < 1e-5
    # The same rows in the same micro-batches: the same pass, to the last bit.
    whole = ordered(responses)
    replayed = run(policy, whole).log_prob_BT
    assert torch.equal(torch.where(whole.mask_BT, replayed, 0.0), whole.old_log_prob_BT)
    # A mini-batch is split and padded otherwise, and rounds otherwise.
    part = ordered(responses.select(slice(16, 32)))
    assert difference(run(policy, part).log_prob_BT, part.old_log_prob_BT, part).max() < 1e-5


@REPLAY
def test_other_routes_change_the_log_probs(
    policy: Policy, prompts: Prompts, make_config: MakeConfig, replay: str
) -> None:
    responses = collect(policy, prompts, make_config(routing_replay=replay), 0, 0).responses
    responses = ordered(responses)
    forced = run(policy, other_routes(responses)).log_prob_BT
    assert difference(forced, responses.old_log_prob_BT, responses).median() > 1e-2


@REPLAY
def test_splitting_padding_and_order_keep_rows_and_routes_together(
    policy: Policy, prompts: Prompts, make_config: MakeConfig, replay: str
) -> None:
    config = make_config(routing_replay=replay)
    responses = collect(policy, prompts, config, 0, 0).mini_batch(2, 16)
    later = moved(policy)
    width = responses.ids_BT.shape[1]
    pad = torch.nn.functional.pad
    assert responses.routes_BTLK is not None
    padded = dataclasses.replace(
        responses,
        ids_BT=pad(responses.ids_BT, (0, width), value=5),
        mask_BT=pad(responses.mask_BT, (0, width)),
        old_log_prob_BT=pad(responses.old_log_prob_BT, (0, width)),
        routes_BTLK=pad(responses.routes_BTLK, (0, 0, 0, 0, 0, width), value=3),
    )
    permuted = responses.select(torch.randperm(16, generator=torch.Generator().manual_seed(1)))
    expected, metrics = gradient(later, responses, config)
    assert expected.abs().max() > 1e-3
    for batch, rows in ((responses, 1), (responses, 5), (padded, 3), (permuted, 4)):
        found, other = gradient(later, batch, config, micro_batch_rows=rows)
        torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-4)
        assert other == pytest.approx(metrics, rel=1e-4, abs=1e-6, nan_ok=True)
    # It is the routes that do it: without them, or with others, the update is another.
    free, _ = gradient(later, dataclasses.replace(responses, routes_BTLK=None), config)
    forced, _ = gradient(later, other_routes(responses), config)
    for other_gradient in (free, forced):
        assert (other_gradient - expected).norm() > 0.01 * expected.norm()


@REPLAY
def test_an_update_equals_autograd_row_by_row(
    policy: Policy, prompts: Prompts, make_config: MakeConfig, replay: str
) -> None:
    config = make_config(routing_replay=replay, objective="grpo")
    responses = collect(policy, prompts, config, 0, 0).mini_batch(1, 16)
    assert responses.routes_BTLK is not None
    later = moved(policy)
    found, _ = gradient(later, responses, config)
    weights = {name: w.clone().requires_grad_() for name, w in later.weights.items()}
    plain = dataclasses.replace(later, weights=weights)
    flips, losses = 0, []
    for row in range(16):
        length = int(responses.length_B[row])
        first = length - int(responses.response_length_B[row])
        ids = responses.ids_BT[row, :length]
        routes = responses.routes_BTLK[row, :length].long().permute(1, 0, 2).unsqueeze(1)
        logits = forward(plain, ids[None], routes_LBTK=routes)[0]
        log_prob = logits[:-1].log_softmax(-1).gather(-1, ids[1:, None])[first - 1 :, 0]
        ratio = (log_prob - responses.old_log_prob_BT[row, first - 1 : length - 1]).exp()
        advantage = responses.advantage_B[row]
        losses.append(-torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage))
        recorded, own = used_routes(later, responses, row)
        flips += int((recorded.sort(-1).values != own.sort(-1).values).any(-1).sum())
    torch.cat(losses).mean().backward()
    assert flips > 10  # at these weights the router would have chosen otherwise
    expected = torch.cat([w.grad.flatten() for w in plain.parameters()])  # type: ignore[union-attr]
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-3)
    router = weights["model.layers.0.mlp.gate.weight"].grad
    assert router is not None
    assert router.norm() > 1e-4


@REPLAY
def test_the_first_update_is_on_policy_on_the_replayed_experts(
    policy: Policy, prompts: Prompts, make_config: MakeConfig, replay: str
) -> None:
    config = make_config(routing_replay=replay)
    responses = collect(policy, prompts, config, 0, 0).mini_batch(0, 16)

    def first(responses: Responses) -> dict[str, float]:
        optimizer = AdamW(policy, betas=(0.9, 0.999), weight_decay=0.0, clip=1.0)
        return policy_update(
            optimizer, responses, config, 1, on_policy=True, reference=policy
        ).metrics

    metrics = first(responses)
    assert metrics["log_ratio_q05"] == metrics["log_ratio_q95"] == metrics["approx_kl"] == 0
    # Experts that the rollout did not use are not those that sampled: refused.
    with pytest.raises(UserError, match="the sampler's log-probabilities differ"):
        first(other_routes(responses))


def test_r2_refuses_a_sampler_that_is_not_the_policy(
    policy: Policy, prompts: Prompts, make_config: MakeConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    from respo.training.local import rollout

    sample = rollout.sample

    def wrong(policy: Policy, *arguments: object, **options: object) -> object:
        return sample(moved(policy), *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(rollout, "sample", wrong)
    with pytest.raises(UserError, match="the sampler's log-probabilities differ"):
        collect(policy, prompts, make_config(routing_replay="R2"), 0, 0)


@REPLAY
def test_rounds_of_dynamic_sampling_keep_their_routes(
    policy: Policy, prompts: Prompts, make_config: MakeConfig, replay: str
) -> None:
    config = make_config(routing_replay=replay, dynamic_sampling=4)
    rollout = collect(policy, prompts, config, 0, 0)
    assert rollout.prompts > 16
    for row in range(0, 64, 5):
        recorded, own = used_routes(policy, rollout.responses, row)
        assert torch.equal(recorded, own)
