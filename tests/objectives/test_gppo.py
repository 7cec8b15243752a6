"""GPPO and CE-GPPO against autograd of their surrogate as the papers print it."""

import math

import pytest
import torch

from respo.objectives import kernel

RATIOS = [0.01, 0.8 - 1e-9, 0.8 + 1e-9, 1.0, 1.2 - 1e-9, 1.2 + 1e-9, 20.0]
PARAMETERS = [
    {},
    {"beta_low": 0.5},
    {"beta_low": 0.75, "beta_high": 0.3},
    {"epsilon_low": 0.1, "epsilon_high": 0.5},
]


def term(batch, epsilon_low=0.2, epsilon_high=0.2, beta_low=1.0, beta_high=1.0):
    """CE-GPPO's objective: beta (1 -+ epsilon) r / sg(r) A beyond the clip; GPPO with beta 1."""

    def value(log_prob_BT):
        ratio_BT = torch.exp(log_prob_BT - batch.old_BT)
        a_B1 = batch.advantage_B.unsqueeze(1)
        one_BT = ratio_BT / ratio_BT.detach()
        used_BT = torch.where(
            (a_B1 < 0) & (ratio_BT < 1 - epsilon_low),
            beta_low * (1 - epsilon_low) * one_BT,
            ratio_BT,
        )
        used_BT = torch.where(
            (a_B1 > 0) & (ratio_BT > 1 + epsilon_high),
            beta_high * (1 + epsilon_high) * one_BT,
            used_BT,
        )
        return used_BT * a_B1

    return value


@pytest.mark.parametrize("spread", [0.02, 0.3, 1.5])
@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_gradient_is_the_surrogates(lab, spread, parameters):
    batch = lab.make_batch(spread=spread)
    lab.assert_gradient(batch, "gppo", term(batch, **parameters), **parameters)


@pytest.mark.parametrize("advantage", [2.0, -2.0, 0.0])
@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_gradient_on_both_sides_of_every_branch_point(lab, advantage, parameters):
    batch = lab.at_ratios(RATIOS, advantage)
    lab.assert_gradient(batch, "gppo", term(batch, **parameters), **parameters)


@pytest.mark.parametrize(
    ("sign", "ratio", "expected"),
    [(-1, 0.1, 0.5 * 0.8), (-1, 0.9, 0.9), (-1, 7.0, 7.0), (1, 7.0, 1.2), (1, 0.1, 0.1)],
)
def test_values_by_hand(sign, ratio, expected):
    log_w = torch.tensor([math.log(ratio)], dtype=torch.float64)
    assert kernel("gppo", log_w, sign, beta_low=0.5).item() == pytest.approx(expected)
