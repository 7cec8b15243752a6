"""MASPO against autograd of its gated surrogate as the paper prints it."""

import math

import pytest
import torch

from respo.objectives import coefficients

# Each with what it switches on or bounds: published, 14B, no risk control, another base width,
# the bounds of mass and risk.
SETTINGS = [
    {},
    {"alpha": 0.5},
    {"beta_low": 0.0, "beta_high": 0.0},
    {"sigma_base": 0.3},
    {"alpha": 3.0},
    {"beta_low": 30.0, "beta_high": 30.0},
]


def term(batch, sigma_base=1.0, alpha=0.3, beta_low=0.03, beta_high=0.03):
    """MASPO, Sec. 4.1, with the widths of App. A.3."""

    def value(log_prob_BT):
        ratio_BT = torch.exp(log_prob_BT - batch.old_BT)
        a_B1 = batch.advantage_B.unsqueeze(1)
        mass_BT = torch.clip(sigma_base / batch.old_BT.exp() ** alpha, max=10)
        sigma_pos_BT = mass_BT * torch.clip(1 + beta_high * a_B1, 0.1, 10)
        sigma_neg_BT = mass_BT * torch.clip(1 / (1 - beta_low * a_B1), 0.1, 10)
        distance_BT = (ratio_BT.detach() - 1) ** 2 / 2
        gate_BT = torch.ones_like(ratio_BT)
        pos_BT = (a_B1 > 0) & (ratio_BT > 1)
        neg_BT = (a_B1 < 0) & (ratio_BT < 1)
        gate_BT = torch.where(pos_BT, torch.exp(-distance_BT / sigma_pos_BT**2), gate_BT)
        gate_BT = torch.where(neg_BT, torch.exp(-distance_BT / sigma_neg_BT**2), gate_BT)
        return gate_BT * ratio_BT * a_B1

    return value


@pytest.mark.parametrize("spread", [0.02, 0.3, 1.0])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_gradient_is_the_surrogates(lab, spread, setting):
    batch = lab.make_batch(spread=spread)
    lab.assert_gradient(batch, "maspo", term(batch, **setting), **setting)


@pytest.mark.parametrize("advantage", [2.0, -2.0, 0.0])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
# min(1 / pi_old^3, 10) changes over at pi_old = 10^(-1/3).
@pytest.mark.parametrize("old_prob", [1e-5, 10 ** (-1 / 3) - 1e-9, 10 ** (-1 / 3) + 1e-9, 1.0])
def test_gradient_on_both_sides_of_every_branch_point(lab, advantage, setting, old_prob):
    batch = lab.at_ratios([0.01, 1 - 1e-9, 1.0, 1 + 1e-9, 3.0], advantage, old_prob)
    lab.assert_gradient(batch, "maspo", term(batch, **setting), **setting)


@pytest.mark.parametrize("beta_high", [9 - 1e-9, 9 + 1e-9])
def test_both_sides_of_the_bound_on_the_risk_of_positive_responses(lab, beta_high):
    batch = lab.at_ratios([2.0], advantage=1.0)
    lab.assert_gradient(batch, "maspo", term(batch, beta_high=beta_high), beta_high=beta_high)


@pytest.mark.parametrize("beta_low", [9 - 1e-9, 9 + 1e-9])
def test_both_sides_of_the_bound_on_the_risk_of_negative_responses(lab, beta_low):
    batch = lab.at_ratios([0.5], advantage=-1.0)
    lab.assert_gradient(batch, "maspo", term(batch, beta_low=beta_low), beta_low=beta_low)


# pi_old = 1/1024 with alpha 0.3: 1024^0.3 = 8. The gate by hand from there.
@pytest.mark.parametrize(
    ("advantage", "ratio", "expected"),
    [
        (1.0, 9.0, 9 * math.exp(-32 / (8 * 1.03) ** 2)),
        (-1.0, 0.5, 0.5 * math.exp(-0.125 / (8 / 1.03) ** 2)),
        (1.0, 0.5, 0.5),
        (-1.0, 9.0, 9.0),
    ],
)
def test_values_by_hand(advantage, ratio, expected):
    log_ratio = torch.tensor([[math.log(ratio)]], dtype=torch.float64)
    old = torch.full_like(log_ratio, -math.log(1024))
    c = coefficients("maspo", log_ratio, torch.tensor([advantage]), torch.ones(1, 1), old)
    assert c.item() == pytest.approx(expected)


def test_the_authors_lower_bound_on_the_first_factor_never_bites():
    # sigma_base / pi_old^alpha >= sigma_base for every probability.
    old_prob = torch.linspace(1e-6, 1, 1001, dtype=torch.float64)
    assert (old_prob**-0.3 >= 1).all()
