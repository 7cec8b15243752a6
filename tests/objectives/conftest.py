"""Random mini-batches, the two gradients whose equality the tests assert, one objective more."""

import math
import sys
from types import SimpleNamespace

import pytest
import torch

import respo.objectives as objectives
from respo.objectives import coefficients, policy_loss, registry, token_weights


def make_batch(responses=24, width=12, spread=0.3, seed=0, dtype=torch.float64):
    """Responses of 1 to `width` tokens, advantages of both signs and 0, log-ratios around 0."""
    generator = torch.Generator().manual_seed(seed)
    old_BT = -2 * torch.rand(responses, width, generator=generator, dtype=torch.float64)
    noise_BT = torch.randn(responses, width, generator=generator, dtype=torch.float64)
    length_B = torch.randint(1, width + 1, (responses,), generator=generator)
    advantage_B = torch.randn(responses, generator=generator, dtype=torch.float64)
    advantage_B[::7] = 0.0
    entropy_BT = 2 * torch.rand(responses, width, generator=generator, dtype=torch.float64)
    return SimpleNamespace(
        old_BT=old_BT.to(dtype),
        log_prob_BT=(old_BT + spread * noise_BT).to(dtype),
        entropy_BT=entropy_BT.to(dtype),
        advantage_B=advantage_B.to(dtype),
        mask_BT=torch.arange(width) < length_B.unsqueeze(1),
        max_response_tokens=width,
    )


def at_ratios(ratios, advantage, old_prob=0.3):
    """One response, a token per importance ratio, all of the same probability under pi_old."""
    batch = make_batch(responses=1, width=len(ratios))
    batch.mask_BT[:] = True
    batch.advantage_B[:] = advantage
    batch.old_BT[:] = math.log(old_prob)
    batch.log_prob_BT = batch.old_BT + torch.tensor([ratios], dtype=torch.float64).log()
    return batch


def loss_gradient(batch, name, aggregation="token-mean", **parameters):
    """Gradient of the package's loss with respect to log pi."""
    log_prob_BT = batch.log_prob_BT.clone().requires_grad_()
    c_BT = coefficients(
        name,
        log_prob_BT - batch.old_BT,
        batch.advantage_B,
        batch.mask_BT,
        batch.old_BT,
        entropy_BT=batch.entropy_BT,
        **parameters,
    )
    weight_B = token_weights(
        aggregation,
        batch.mask_BT,
        batch_tokens=int(batch.mask_BT.sum()),
        batch_responses=len(batch.mask_BT),
        max_response_tokens=batch.max_response_tokens,
    )
    policy_loss(log_prob_BT, c_BT, batch.advantage_B, batch.mask_BT, weight_B).backward()
    return log_prob_BT.grad


def textbook_gradient(batch, objective_of):
    """Gradient of -objective_of(log_prob_BT), written as a paper prints it, by autograd."""
    log_prob_BT = batch.log_prob_BT.clone().requires_grad_()
    (-objective_of(log_prob_BT)).backward()
    return log_prob_BT.grad


def assert_gradient(batch, name, term_of, **parameters):
    """Both gradients are the same, term_of(log_prob_BT) being the summand of the token mean."""

    def objective_of(log_prob_BT):
        return term_of(log_prob_BT)[batch.mask_BT].sum() / batch.mask_BT.sum()

    expected = textbook_gradient(batch, objective_of)
    actual = loss_gradient(batch, name, **parameters)
    torch.testing.assert_close(actual, expected, rtol=1e-11, atol=1e-15)


def clipped_surrogate(ratio_BT, advantage_BT, low, high, dual_clip=None):
    """min(r A, clip(r, low, high) A); the dual clip bounds it from below for A < 0 (Ye 2020)."""
    term_BT = torch.minimum(ratio_BT * advantage_BT, torch.clip(ratio_BT, low, high) * advantage_BT)
    if dual_clip is None:
        return term_BT
    bounded_BT = torch.maximum(term_BT, dual_clip * advantage_BT)
    return torch.where(advantage_BT < 0, bounded_BT, term_BT)


@pytest.fixture
def lab():
    return SimpleNamespace(
        make_batch=make_batch,
        at_ratios=at_ratios,
        loss_gradient=loss_gradient,
        textbook_gradient=textbook_gradient,
        assert_gradient=assert_gradient,
        clipped_surrogate=clipped_surrogate,
    )


NEW_OBJECTIVE = '''"""A new objective."""

from respo.objectives.parameters import NonNegative
from respo.objectives.registry import objective


@objective("scaled_ratio")
def scaled_ratio(log_ratio_BT, *, scale: NonNegative = 2.0):
    """Return scale * r."""
    return scale * log_ratio_BT.exp()  # linear
'''


@pytest.fixture
def new_objective(tmp_path, monkeypatch):
    """One more file in the folder of objectives, and nothing else."""
    monkeypatch.setattr(objectives, "__path__", [*objectives.__path__, str(tmp_path)])
    monkeypatch.setattr(registry, "_OBJECTIVES", dict(registry._OBJECTIVES))
    file = tmp_path / "scaled_ratio.py"
    file.write_text(NEW_OBJECTIVE)
    registry.import_modules(objectives)
    yield file
    del sys.modules["respo.objectives.scaled_ratio"], objectives.scaled_ratio
