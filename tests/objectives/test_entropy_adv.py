"""Entropy advantage against autograd of GRPO's surrogate with the shaped advantage."""

import math

import pytest
import torch

from respo.objectives import coefficients

RATIOS = [0.01, 0.8 - 1e-9, 0.8 + 1e-9, 1.0, 1.28 - 1e-9, 1.28 + 1e-9, 3 - 1e-9, 3 + 1e-9]


def term(lab, batch, alpha=0.4, kappa=2.0, low=0.2, high=0.28, dual_clip=None):
    """Cheng et al. 2025: A + min(alpha H, |A| / kappa) in place of A."""
    a_B1 = batch.advantage_B.unsqueeze(1)
    shaped_BT = a_B1 + torch.minimum(alpha * batch.entropy_BT, a_B1.abs() / kappa)

    def value(log_prob_BT):
        ratio_BT = torch.exp(log_prob_BT - batch.old_BT)
        return lab.clipped_surrogate(ratio_BT, shaped_BT, 1 - low, 1 + high, dual_clip)

    return value


@pytest.mark.parametrize("spread", [0.02, 0.3, 1.5])
@pytest.mark.parametrize(("alpha", "kappa"), [(0.4, 2.0), (0.1, 2.0), (5.0, 1.01), (0.0, 2.0)])
def test_gradient_is_the_surrogates(lab, spread, alpha, kappa):
    batch = lab.make_batch(spread=spread)
    lab.assert_gradient(
        batch, "entropy_adv", term(lab, batch, alpha, kappa), alpha=alpha, kappa=kappa
    )


@pytest.mark.parametrize("advantage", [2.0, -2.0, 1e-12, -1e-12, 0.0])
@pytest.mark.parametrize("dual_clip", [None, 3.0])
# With A = 2 and the defaults the bonus is bounded from 1 / 0.4 nats on.
@pytest.mark.parametrize("entropy", [0.0, 2.5 - 1e-9, 2.5 + 1e-9, 12.0])
def test_gradient_on_both_sides_of_every_branch_point(lab, advantage, dual_clip, entropy):
    batch = lab.at_ratios(RATIOS, advantage)
    batch.entropy_BT[:] = entropy
    lab.assert_gradient(
        batch, "entropy_adv", term(lab, batch, dual_clip=dual_clip), dual_clip=dual_clip
    )


@pytest.mark.parametrize(
    ("advantage", "entropy", "expected"),
    [(1.0, 1.0, 1.4), (1.0, 9.0, 1.5), (-1.0, 1.0, 0.6), (-1.0, 9.0, 0.5), (-1.0, 0.0, 1.0)],
)
def test_values_by_hand(advantage, entropy, expected):
    c = coefficients(
        "entropy_adv",
        torch.zeros(1, 1),
        torch.tensor([advantage]),
        torch.ones(1, 1),
        entropy_BT=torch.tensor([[entropy]]),
    )
    assert c.item() == pytest.approx(expected)


def test_no_entropy_is_clip_higher():
    log_ratio_BT = torch.linspace(-2, 2, 41).expand(2, 41)
    inputs = (log_ratio_BT, torch.tensor([1.0, -1.0]), torch.ones(2, 41))
    shaped = coefficients("entropy_adv", *inputs, entropy_BT=torch.zeros(2, 41))
    assert torch.equal(shaped, coefficients("grpo", *inputs, epsilon_high=0.28))


@pytest.mark.parametrize("advantage", [1e-40, -1e-40, 0.0])
def test_the_smallest_advantages_are_finite(advantage):
    c = coefficients(
        "entropy_adv",
        torch.zeros(1, 1),
        torch.tensor([advantage]),
        torch.ones(1, 1),
        entropy_BT=torch.ones(1, 1),
    )
    assert 0.5 <= c.item() <= 1.5
    assert not math.isnan(c.item())
