"""DPPO with the TV mask against autograd of its surrogate, and by hand."""

import math

import pytest
import torch

from respo.objectives import coefficients


def term(batch, delta_low=0.15, delta_high=0.15, ratio_cap=20.0):
    """DPPO: M r A, the ratio truncated (Sec. 5.4), M by the shift of the token's probability."""

    def value(log_prob_BT):
        prob_BT, old_BT = log_prob_BT.exp().detach(), batch.old_BT.exp()
        a_B1 = batch.advantage_B.unsqueeze(1)
        ratio_BT = (prob_BT / old_BT).clip(max=ratio_cap)
        keep_pos_BT = prob_BT - old_BT <= delta_high
        keep_neg_BT = prob_BT - old_BT >= -delta_low
        return torch.where(a_B1 > 0, keep_pos_BT, keep_neg_BT) * ratio_BT * a_B1 * log_prob_BT

    return value


@pytest.mark.parametrize("spread", [0.02, 0.3, 1.5])
@pytest.mark.parametrize(
    "parameters", [{}, {"delta_low": 0.3, "delta_high": 0.05}, {"ratio_cap": 1.1}], ids=str
)
def test_gradient_is_the_surrogates(lab, spread, parameters):
    batch = lab.make_batch(spread=spread)
    lab.assert_gradient(batch, "dppo_tv", term(batch, **parameters), **parameters)


@pytest.mark.parametrize("advantage", [2.0, -2.0, 0.0])
@pytest.mark.parametrize("old_prob", [0.01, 0.3])
def test_gradient_on_both_sides_of_every_branch_point(lab, advantage, old_prob):
    points = [1 - 0.15 / old_prob, 1 + 0.15 / old_prob, 20.0]
    ratios = [p + d for p in points for d in (-1e-9, 1e-9) if p > 0]
    batch = lab.at_ratios(ratios, advantage, old_prob)
    lab.assert_gradient(batch, "dppo_tv", term(batch))


# (pi_old, pi) -> c. A rare token may rise tenfold; a likely one may not lose a fifth.
@pytest.mark.parametrize(
    ("old_prob", "prob", "advantage", "expected"),
    [
        (0.01, 0.1, 1, 10.0),
        (0.01, 0.17, 1, 0.0),
        (0.9, 0.76, -1, 0.76 / 0.9),
        (0.9, 0.74, -1, 0.0),
        (0.9, 0.74, 1, 0.74 / 0.9),
        (0.01, 0.17, -1, 17.0),
        (0.001, 0.1, 1, 20.0),
    ],
)
def test_values_by_hand(old_prob, prob, advantage, expected):
    log_ratio = torch.tensor([[math.log(prob / old_prob)]], dtype=torch.float64)
    old = torch.full_like(log_ratio, math.log(old_prob))
    c = coefficients("dppo_tv", log_ratio, torch.tensor([float(advantage)]), torch.ones(1, 1), old)
    assert c.item() == pytest.approx(expected)


def test_without_truncation():
    inputs = (torch.tensor([[5.0]]), -torch.ones(1), torch.ones(1, 1), torch.tensor([[-9.0]]))
    assert coefficients("dppo_tv", *inputs, ratio_cap=None).item() == pytest.approx(math.exp(5))
