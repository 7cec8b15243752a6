import dataclasses
import math
from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from respo.cli import UserError
from respo.config.schema import RunConfig
from respo.policy import Policy, forward
from respo.training.local.optimizer import AdamW
from respo.training.local.prompts import Prompts
from respo.training.local.responses import Responses
from respo.training.local.rollout import Rollout, collect
from respo.training.local.update import policy_update

# What does not depend on the kind of network is tested with one kind.
DENSE = pytest.mark.parametrize("initial", [0], indirect=True, ids=["dense"])
MakeConfig = Callable[..., RunConfig]


def adamw(policy: Policy, config: RunConfig) -> AdamW:
    settings = config.training.optimizer
    beta1, beta2 = settings.betas
    return AdamW(
        policy,
        betas=(beta1, beta2),
        weight_decay=settings.weight_decay,
        clip=settings.gradient_clip,
    )


def moved(policy: Policy, seed: int = 0, by: float = 0.02) -> Policy:
    """The policy some updates later, in a random direction."""
    generator = torch.Generator().manual_seed(seed)
    weights = {
        name: w + by * torch.randn(w.shape, generator=generator)
        for name, w in sorted(policy.weights.items())
    }
    return dataclasses.replace(policy, weights=weights)


def learning_rollout(policy: Policy, prompts: Prompts, config: RunConfig) -> Rollout:
    """A rollout batch in which some but not all groups have an advantage."""
    rollout = collect(policy, prompts, config, 0, 0)
    zero = (rollout.responses.advantage_B == 0).double().mean()
    assert 0 < zero < 1
    return rollout


def textbook_grpo(policy: Policy, responses: Responses, config: RunConfig) -> Tensor:
    """GRPO as printed, response by response: -min(r A, clip(r) A), mean over all tokens."""
    losses = []
    for row in range(len(responses.ids_BT)):
        length = int(responses.length_B[row])
        tokens = int(responses.response_length_B[row])
        ids = responses.ids_BT[row, :length]
        logits = forward(policy, ids[None])[0] / config.training.temperature
        for position in range(length - tokens, length):
            log_prob = logits[position - 1].log_softmax(-1)[ids[position]]
            ratio = (log_prob - responses.old_log_prob_BT[row, position - 1]).exp()
            advantage = responses.advantage_B[row]
            clipped = ratio.clamp(1 - 0.2, 1 + 0.2)
            losses.append(-torch.minimum(ratio * advantage, clipped * advantage))
    return torch.stack(losses).mean()


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_equals_the_textbook(
    policy: Policy, prompts: Prompts, make_config: MakeConfig, temperature: float
) -> None:
    config = make_config(objective="grpo", temperature=temperature, gradient_clip=0.5)
    rollout = learning_rollout(policy, prompts, config)
    later = moved(policy)
    optimizer = adamw(later, config)
    responses = rollout.mini_batch(1, 16)
    updated = policy_update(optimizer, responses, config, 2, on_policy=False, reference=policy)

    weights = {name: w.clone().requires_grad_() for name, w in later.weights.items()}
    plain = dataclasses.replace(later, weights=weights)
    reference = torch.optim.AdamW(plain.parameters(), lr=5e-3, betas=(0.9, 0.999), weight_decay=0.0)
    textbook_grpo(plain, responses, config).backward()
    norm = torch.nn.utils.clip_grad_norm_(plain.parameters(), 0.5)
    assert updated.metrics["grad_norm"] == pytest.approx(norm.item(), rel=1e-5)
    assert updated.metrics["clip_fraction_pos"] > 0
    # Before the optimizer: Adam's first step is the sign of the gradient and would hide its size.
    expected = torch.cat([w.grad.flatten() for w in plain.parameters()])  # type: ignore[union-attr]
    torch.testing.assert_close(optimizer.exp_avg / 0.1, expected, atol=1e-6, rtol=1e-4)
    reference.step()
    for mine, theirs in zip(optimizer.policy.parameters(), plain.parameters(), strict=True):
        # Where the gradient is rounding error, so is the direction of Adam's step.
        certain = theirs.grad.abs() > 1e-5  # type: ignore[union-attr]
        torch.testing.assert_close(mine[certain], theirs[certain], atol=1e-6, rtol=1e-5)


# Four of the study, one that needs the entropy, one that needs sums over the whole mini-batch.
@pytest.mark.parametrize("objective", ["grpo", "gspo", "vespo", "respo", "entropy_adv", "bapo"])
@pytest.mark.parametrize(
    "aggregation",
    ["token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm"],
)
def test_split_and_padding_do_not_matter(
    policy: Policy, prompts: Prompts, make_config: MakeConfig, objective: str, aggregation: str
) -> None:
    config = make_config(objective=objective, loss_aggregation=aggregation)
    responses = learning_rollout(policy, prompts, config).mini_batch(2, 16)
    width = responses.ids_BT.shape[1]
    pad = torch.nn.functional.pad
    padded = dataclasses.replace(
        responses,
        ids_BT=pad(responses.ids_BT, (0, width), value=5),
        mask_BT=pad(responses.mask_BT, (0, width)),
        old_log_prob_BT=pad(responses.old_log_prob_BT, (0, width), value=math.nan),
    )
    results = []
    for batch, rows in ((responses, 16), (responses, 1), (responses, 5), (padded, 3)):
        optimizer = adamw(moved(policy), config)
        updated = policy_update(
            optimizer, batch, config, 1, on_policy=False, reference=policy, micro_batch_rows=rows
        )
        results.append((optimizer.exp_avg, updated))
    gradient, first = results[0]
    assert gradient.abs().max() > 1e-4
    for other, updated in results[1:]:
        torch.testing.assert_close(other, gradient, atol=1e-7, rtol=1e-4)
        assert updated.metrics == pytest.approx(first.metrics, rel=1e-4, abs=1e-6, nan_ok=True)
        torch.testing.assert_close(updated.branches, first.branches, rtol=1e-4, atol=1e-6)


def test_rows_without_advantage_count_in_the_metrics_alone(
    policy: Policy, prompts: Prompts, make_config: MakeConfig
) -> None:
    config = make_config(objective="grpo")
    responses = learning_rollout(policy, prompts, config).responses
    later = moved(policy)
    updated = policy_update(
        adamw(later, config), responses, config, 1, on_policy=False, reference=policy
    )
    # Entropy and KL of all rows, from the logits of the unsplit batch.
    logits = forward(later, responses.ids_BT)[:, :-1].double()
    log_probs = logits.log_softmax(-1)
    entropy = -(log_probs.exp() * log_probs).sum(-1)[responses.mask_BT].mean()
    log_prob = log_probs.gather(-1, responses.ids_BT[:, 1:, None])[..., 0]
    log_ratio = (log_prob - responses.old_log_prob_BT) * responses.mask_BT
    assert updated.metrics["entropy"] == pytest.approx(entropy.item(), abs=1e-5)
    kl = -(log_ratio.sum() / responses.mask_BT.sum()).item()
    assert updated.metrics["approx_kl"] == pytest.approx(kl, abs=1e-6)
    mean = log_ratio.sum(1).mean().item()
    assert updated.metrics["log_ratio_mean"] == pytest.approx(mean, abs=1e-5)
    zero = responses.equal_reward_B.double().mean().item()
    assert updated.metrics["zero_advantage_groups"] == zero


def textbook_regularisation(
    policy: Policy, reference: Policy, responses: Responses, config: RunConfig
) -> Tensor:
    """GRPO + 0.3 KL - 0.2 entropy, response by response, in the aggregation of the run."""
    rows = []
    for row in range(len(responses.ids_BT)):
        length = int(responses.length_B[row])
        first = length - int(responses.response_length_B[row])
        ids = responses.ids_BT[row, :length]
        log_probs, reference_log_probs = (
            (forward(p, ids[None])[0, first - 1 : -1] / config.training.temperature).log_softmax(-1)
            for p in (policy, reference)
        )
        log_prob, reference_log_prob = (
            lp.gather(-1, ids[first:, None])[:, 0] for lp in (log_probs, reference_log_probs)
        )
        ratio = (log_prob - responses.old_log_prob_BT[row, first - 1 : length - 1]).exp()
        advantage = responses.advantage_B[row]
        loss = -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage)
        # Schulman (2020), k3, with r = pi_ref / pi: r - 1 - log r.
        k3 = (reference_log_prob - log_prob).exp() - 1 - (reference_log_prob - log_prob)
        entropy = -(log_probs.exp() * log_probs).sum(-1)
        rows.append(loss + 0.3 * k3 - 0.2 * entropy)
    if config.training.loss_aggregation == "token-mean":
        return torch.cat(rows).mean()
    return torch.stack([row.mean() for row in rows]).mean()


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("aggregation", ["token-mean", "seq-mean-token-mean"])
def test_kl_and_entropy_equal_the_textbook(
    policy: Policy, prompts: Prompts, make_config: MakeConfig, temperature: float, aggregation: str
) -> None:
    config = make_config(
        objective="grpo",
        temperature=temperature,
        loss_aggregation=aggregation,
        kl_coefficient=0.3,
        entropy_coefficient=0.2,
    )
    # Rows without advantage are part of it: they have a gradient here.
    responses = learning_rollout(policy, prompts, config).responses
    # So near that no k3 reaches its clamp at 10, which the textbook does not have.
    later = moved(policy, by=0.005)
    for rows in (16, 3):
        optimizer = adamw(later, make_config(gradient_clip=1e9))
        policy_update(
            optimizer,
            responses,
            config,
            2,
            on_policy=False,
            reference=policy,
            micro_batch_rows=rows,
        )
        weights = {name: w.clone().requires_grad_() for name, w in later.weights.items()}
        plain = dataclasses.replace(later, weights=weights)
        textbook_regularisation(plain, policy, responses, config).backward()
        expected = torch.cat([w.grad.flatten() for w in plain.parameters()])  # type: ignore[union-attr]
        assert expected.abs().max() > 1e-3
        torch.testing.assert_close(optimizer.exp_avg / 0.1, expected, atol=1e-6, rtol=1e-3)


@DENSE
@pytest.mark.parametrize("option", ["kl_coefficient", "entropy_coefficient"])
def test_rows_without_advantage_learn_from_each_term(
    policy: Policy, prompts: Prompts, make_config: MakeConfig, option: str
) -> None:
    config = make_config(**{option: 0.1})
    responses = collect(policy, prompts, config, 0, 0).mini_batch(0, 16)
    equal = dataclasses.replace(responses, advantage_B=torch.zeros(16))
    optimizer = adamw(moved(policy), config)
    updated = policy_update(optimizer, equal, config, 2, on_policy=False, reference=policy)
    assert updated.metrics["grad_norm"] > 1e-3
    with_kl = option == "kl_coefficient"
    assert (updated.metrics["reference_kl"] > 0) == with_kl
    assert math.isnan(updated.metrics["reference_kl"]) != with_kl


@DENSE
def test_each_term_pulls_where_it_should(
    policy: Policy, prompts: Prompts, make_config: MakeConfig
) -> None:
    responses = collect(policy, prompts, make_config(), 0, 0).mini_batch(0, 16)
    equal = dataclasses.replace(responses, advantage_B=torch.zeros(16))
    for options, metric, sign in (
        ({"kl_coefficient": 1.0}, "reference_kl", -1),
        ({"entropy_coefficient": 1.0, "kl_coefficient": 1e-9}, "entropy", 1),
    ):
        config = make_config(**options, learning_rate=1e-3)
        optimizer = adamw(moved(policy), config)
        seen = [
            policy_update(optimizer, equal, config, 2, on_policy=False, reference=policy).metrics[
                metric
            ]
            for _ in range(4)
        ]
        steps = [sign * (after - before) for before, after in pairwise(seen)]
        assert min(steps) > 0, metric


@DENSE
def test_the_mean_kl_is_over_tokens_whatever_the_aggregation(
    policy: Policy, prompts: Prompts, make_config: MakeConfig
) -> None:
    responses = collect(policy, prompts, make_config(), 0, 0).mini_batch(0, 16)
    later = moved(policy)
    log_prob_BT, reference_log_prob_BT = (
        forward(p, responses.ids_BT)[:, :-1]
        .log_softmax(-1)
        .gather(-1, responses.ids_BT[:, 1:, None])[..., 0]
        for p in (later, policy)
    )
    log_ratio_BT = reference_log_prob_BT - log_prob_BT
    expected = (log_ratio_BT.exp() - log_ratio_BT - 1)[responses.mask_BT].mean().item()
    for aggregation in ("token-mean", "seq-mean-token-sum"):
        config = make_config(kl_coefficient=0.1, loss_aggregation=aggregation)
        updated = policy_update(
            adamw(later, config), responses, config, 2, on_policy=False, reference=policy
        )
        assert updated.metrics["reference_kl"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_log_ratio_is_zero_before_the_first_update(
    policy: Policy, prompts: Prompts, make_config: MakeConfig, temperature: float
) -> None:
    config = make_config(temperature=temperature)
    rollout = collect(policy, prompts, config, 0, 0)
    optimizer = adamw(policy, config)
    first = policy_update(
        optimizer, rollout.mini_batch(0, 16), config, 1, on_policy=True, reference=policy
    ).metrics
    for name in ("log_ratio_mean", "log_ratio_q05", "log_ratio_q95", "approx_kl"):
        assert first[name] == 0.0
    assert first["coefficient_mean_pos"] == first["coefficient_mean_neg"] == 1.0
    second = policy_update(
        optimizer, rollout.mini_batch(1, 16), config, 2, on_policy=False, reference=policy
    ).metrics
    assert second["approx_kl"] != 0.0


def test_a_sampler_at_another_temperature_is_refused(
    policy: Policy, prompts: Prompts, make_config: MakeConfig
) -> None:
    rollout = collect(policy, prompts, make_config(temperature=0.6), 0, 0)
    config = make_config(temperature=1.0)
    with pytest.raises(UserError, match="the sampler's log-probabilities differ"):
        policy_update(
            adamw(policy, config),
            rollout.mini_batch(0, 16),
            config,
            1,
            on_policy=True,
            reference=policy,
        )


@DENSE
@pytest.mark.parametrize("on_policy", [True, False])
def test_no_advantage_at_all_is_a_step_with_zero_gradient(
    policy: Policy, prompts: Prompts, make_config: MakeConfig, on_policy: bool
) -> None:
    config = make_config()
    responses = collect(policy, prompts, config, 0, 0).mini_batch(0, 16)
    equal = dataclasses.replace(
        responses,
        advantage_B=torch.zeros(16),
        equal_reward_B=torch.ones(16, dtype=torch.bool),
    )
    optimizer = adamw(policy, config)
    updated = policy_update(optimizer, equal, config, 1, on_policy=on_policy, reference=policy)
    assert optimizer.step_count == 1
    assert all(map(torch.equal, optimizer.policy.parameters(), policy.parameters()))
    metrics = updated.metrics
    assert metrics["grad_norm"] == 0
    assert metrics["zero_advantage_groups"] == 1
    assert not updated.branches.any()
    undefined = {name for name, value in metrics.items() if math.isnan(value)}
    assert undefined == {"reference_kl"} | {
        f"{kind}_{sign}"
        for kind in ("clip_fraction", "coefficient_mean", "ratio_mean")
        for sign in ("pos", "neg")
    }


@DENSE
def test_warmup_is_linear(policy: Policy, prompts: Prompts, make_config: MakeConfig) -> None:
    config = make_config(warmup_updates=4, learning_rate=0.01)
    responses = learning_rollout(policy, prompts, config).responses
    steps = []
    for update in (1, 2, 4, 9):
        optimizer = adamw(policy, config)
        before = optimizer.vector.clone()
        policy_update(optimizer, responses, config, update, on_policy=True, reference=policy)
        # Adam's first step has the size of the learning rate wherever there is a gradient.
        steps.append((optimizer.vector - before).abs().max().item())
    assert steps == pytest.approx([0.0025, 0.005, 0.01, 0.01], rel=1e-2)


@DENSE
def test_weights_that_are_not_finite_stop_the_run(
    policy: Policy, prompts: Prompts, make_config: MakeConfig
) -> None:
    config = make_config()
    responses = learning_rollout(policy, prompts, config).responses
    optimizer = adamw(policy, config)
    optimizer.policy.weights["model.norm.weight"].detach().fill_(math.nan)
    before = optimizer.vector.clone()
    with pytest.raises(UserError, match=r"update 7: loss nan, gradient norm .*not finite"):
        policy_update(optimizer, responses, config, 7, on_policy=False, reference=policy)
    assert torch.equal(optimizer.vector, before) or torch.isnan(before).any()
    assert optimizer.step_count == 0
