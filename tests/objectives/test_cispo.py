"""CISPO against autograd of its surrogate, and by hand."""

import math

import pytest
import torch

from respo.objectives import kernel


def term(batch, low, high):
    """MiniMax-M1, Sec. 3.1: sg(clip(r, 1 - low, 1 + high)) A log pi."""

    def value(log_prob_BT):
        ratio_BT = torch.exp(log_prob_BT - batch.old_BT)
        weight_BT = torch.clip(ratio_BT, 1 - low, 1 + high).detach()
        return weight_BT * batch.advantage_B.unsqueeze(1) * log_prob_BT

    return value


@pytest.mark.parametrize("spread", [0.02, 0.3, 1.5])
@pytest.mark.parametrize(("low", "high"), [(1.0, 4.0), (0.2, 0.28), (0.0, 0.0)])
def test_gradient_is_the_surrogates(lab, spread, low, high):
    batch = lab.make_batch(spread=spread)
    parameters = {"epsilon_low": low, "epsilon_high": high}
    lab.assert_gradient(batch, "cispo", term(batch, low, high), **parameters)


@pytest.mark.parametrize("advantage", [2.0, -2.0, 0.0])
def test_gradient_on_both_sides_of_every_branch_point(lab, advantage):
    ratios = [1e-6, 0.8 - 1e-9, 0.8 + 1e-9, 1.28 - 1e-9, 1.28 + 1e-9, 5 - 1e-9, 5 + 1e-9]
    batch = lab.at_ratios(ratios, advantage)
    lab.assert_gradient(batch, "cispo", term(batch, 1.0, 4.0))
    lab.assert_gradient(batch, "cispo", term(batch, 0.2, 0.28), epsilon_low=0.2, epsilon_high=0.28)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_cap_is_one_plus_epsilon_high_for_both_signs(sign):
    log_w = torch.tensor([math.log(1e-3), math.log(4.9), math.log(6.0)], dtype=torch.float64)
    torch.testing.assert_close(
        kernel("cispo", log_w, sign), torch.tensor([1e-3, 4.9, 5.0]).double(), rtol=1e-6, atol=0
    )
