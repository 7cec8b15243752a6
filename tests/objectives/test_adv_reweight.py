"""Advantage reweighting against autograd of GRPO's surrogate with the reweighted advantage."""

import math

import pytest
import torch

from respo.objectives import coefficients

RATIOS = [0.01, 0.8 - 1e-9, 0.8 + 1e-9, 1.0, 1.2 - 1e-9, 1.2 + 1e-9, 3 - 1e-9, 3 + 1e-9]


def term(lab, batch, alpha=0.1, low=0.2, high=0.2, dual_clip=None):
    """Yang et al. 2025b: A (alpha sg(pi) + 1 - alpha) in place of A."""

    def value(log_prob_BT):
        weight_BT = alpha * log_prob_BT.exp().detach() + 1 - alpha
        ratio_BT = torch.exp(log_prob_BT - batch.old_BT)
        advantage_BT = batch.advantage_B.unsqueeze(1) * weight_BT
        return lab.clipped_surrogate(ratio_BT, advantage_BT, 1 - low, 1 + high, dual_clip)

    return value


@pytest.mark.parametrize("spread", [0.02, 0.3, 1.5])
@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.3, 1.0])
@pytest.mark.parametrize("dual_clip", [None, 3.0])
def test_gradient_is_the_surrogates(lab, spread, alpha, dual_clip):
    batch = lab.make_batch(spread=spread)
    batch.log_prob_BT.clamp_(max=0)
    lab.assert_gradient(
        batch,
        "adv_reweight",
        term(lab, batch, alpha, dual_clip=dual_clip),
        alpha=alpha,
        dual_clip=dual_clip,
    )


@pytest.mark.parametrize("advantage", [2.0, -2.0, 0.0])
@pytest.mark.parametrize("dual_clip", [None, 3.0])
def test_gradient_on_both_sides_of_every_branch_point(lab, advantage, dual_clip):
    batch = lab.at_ratios(RATIOS, advantage)
    lab.assert_gradient(
        batch, "adv_reweight", term(lab, batch, dual_clip=dual_clip), dual_clip=dual_clip
    )


@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_by_hand(advantage):
    # pi = 0.5 * 1.1: (0.3 * 0.55 + 0.7) * 1.1.
    log_ratio, old = torch.tensor([[math.log(1.1)]]), torch.tensor([[math.log(0.5)]])
    inputs = (log_ratio, torch.tensor([advantage]), torch.ones(1, 1), old)
    assert coefficients("adv_reweight", *inputs, alpha=0.3).item() == pytest.approx(0.865 * 1.1)


def test_a_probability_is_at_most_one():
    inputs = (torch.tensor([[100.0]]), -torch.ones(1), torch.ones(1, 1), torch.tensor([[-1.0]]))
    assert coefficients("adv_reweight", *inputs).item() == pytest.approx(math.exp(20))
