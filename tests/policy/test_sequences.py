"""Logits and gradients against transformers' own classes, and what follows from them."""

import pytest
import torch

from respo.policy import forward, forward_with_routes, save_policy, token_log_probs


@pytest.fixture(scope="module")
def transformers():
    return pytest.importorskip("transformers")


@pytest.fixture
def ids_BT() -> torch.Tensor:
    return torch.randint(2, 20, (5, 17), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(
    ("experts", "tied", "renormalise"),
    [(0, True, False), (0, False, False), (4, True, True), (4, False, True), (4, True, False)],
)
def test_logits_and_gradients_equal_transformers(
    transformers, make_policy, tmp_path, ids_BT, experts, tied, renormalise
):
    policy = make_policy(experts, tied=tied)
    if experts:
        policy.config["norm_topk_prob"] = renormalise
    save_policy(policy, tmp_path / "policy")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "policy")
    for weight in policy.parameters():
        weight.requires_grad_()
    logits_BTV = forward(policy, ids_BT)
    expected_BTV = model(ids_BT).logits
    torch.testing.assert_close(logits_BTV, expected_BTV, rtol=0, atol=1e-5)

    direction_BTV = torch.randn(logits_BTV.shape, generator=torch.Generator().manual_seed(2))
    (logits_BTV * direction_BTV).sum().backward()
    (expected_BTV * direction_BTV).sum().backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    assert gradients.keys() == policy.weights.keys()
    for name, weight in policy.weights.items():
        error = (weight.grad - gradients[name]).norm() / gradients[name].norm()
        assert error < 1e-5, name


def test_padding_on_the_right_changes_nothing(policy, ids_BT):
    padded_BT = torch.nn.functional.pad(ids_BT, (0, 17), value=0)
    torch.testing.assert_close(
        forward(policy, padded_BT)[:, :17], forward(policy, ids_BT), rtol=0, atol=1e-5
    )


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_log_probs_and_entropy_by_definition(policy, ids_BT, temperature):
    log_prob_BT, entropy_BT = token_log_probs(policy, ids_BT, temperature)
    assert log_prob_BT.shape == entropy_BT.shape == (5, 16)
    assert log_prob_BT.dtype == entropy_BT.dtype == torch.float32
    logits_BTV = forward(policy, ids_BT).double() / temperature
    for b, t in [(0, 0), (3, 7), (4, 15)]:
        distribution_V = torch.softmax(logits_BTV[b, t], 0)
        expected = distribution_V[ids_BT[b, t + 1]].log().item()
        assert log_prob_BT[b, t].item() == pytest.approx(expected, abs=1e-5)
        entropy = -(distribution_V * distribution_V.log()).sum().item()
        assert entropy_BT[b, t].item() == pytest.approx(entropy, abs=1e-5)


def test_log_probs_are_differentiable_entropy_is_not(policy, ids_BT):
    policy.weights["model.norm.weight"].requires_grad_()
    log_prob_BT, entropy_BT = token_log_probs(policy, ids_BT, 1.0)
    assert log_prob_BT.requires_grad
    assert not entropy_BT.requires_grad


def test_the_entropy_is_differentiable_on_demand(policy, ids_BT):
    norm = policy.weights["model.norm.weight"].requires_grad_()
    _, plain_BT = token_log_probs(policy, ids_BT, 0.5)
    _, entropy_BT = token_log_probs(policy, ids_BT, 0.5, entropy_gradient=True)
    assert torch.equal(entropy_BT, plain_BT)
    (gradient,) = torch.autograd.grad(entropy_BT.sum(), norm)
    # Central difference along one direction, in the float32 of the forward pass.
    direction = torch.randn(norm.shape, generator=torch.Generator().manual_seed(3))
    sums = []
    for step in (1e-2, -1e-2):
        policy.weights["model.norm.weight"] = norm.detach() + step * direction
        sums.append(token_log_probs(policy, ids_BT, 0.5)[1].double().sum())
    slope = (sums[0] - sums[1]).item() / 2e-2
    assert (gradient * direction).sum().item() == pytest.approx(slope, rel=1e-2)


def test_routes_are_recorded_with_the_log_probs(make_policy, ids_BT):
    policy, record = make_policy(4), []
    recorded_BT, _ = token_log_probs(policy, ids_BT, 1.0, record=record)
    assert torch.equal(torch.stack(record), forward_with_routes(policy, ids_BT)[1])
    replayed_BT, _ = token_log_probs(policy, ids_BT, 1.0, routes_LBTK=torch.stack(record))
    assert torch.equal(replayed_BT, recorded_BT)


def test_replaying_the_own_routes_changes_nothing(make_policy, ids_BT):
    policy = make_policy(4)
    logits_BTV, routes_LBTK = forward_with_routes(policy, ids_BT)
    assert routes_LBTK.shape == (2, 5, 17, 2)
    assert torch.equal(forward(policy, ids_BT, routes_LBTK=routes_LBTK), logits_BTV)


def test_other_routes_change_the_logits_and_only_their_experts_learn(make_policy, ids_BT):
    policy = make_policy(4)
    for weight in policy.parameters():
        weight.requires_grad_()
    routes_LBTK = torch.tensor([2, 3]).expand(2, 5, 17, 2)
    logits_BTV = forward(policy, ids_BT, routes_LBTK=routes_LBTK)
    assert not torch.allclose(logits_BTV, forward(policy, ids_BT), atol=1e-2)
    logits_BTV.square().sum().backward()
    gradient = policy.weights["model.layers.1.mlp.experts.down_proj"].grad
    used = [bool(gradient[expert].abs().sum() > 0) for expert in range(4)]
    assert used == [False, False, True, True]
    # The router's probabilities of the replayed experts stay differentiable.
    assert policy.weights["model.layers.1.mlp.gate.weight"].grad.abs().sum() > 0
