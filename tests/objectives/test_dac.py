"""DAC against autograd of DCPO's clipped surrogate, at bounds that follow pi_old."""

import math

import pytest
import torch

from respo.objectives import coefficients


def bounds(old_prob, low=0.16, high=0.2):
    """MASPO, Sec. 3, and DCPO's dynamic clip, in plain floats."""
    return (
        0.5 + math.sqrt(max(1 - 4 * low / old_prob, 0)) / 2,
        0.5 + math.sqrt(1 + 4 * high / old_prob) / 2,
    )


def term(lab, batch, low=0.16, high=0.2, cap=10.0):
    """DCPO's public code: bounds by pi_old, the upper one at most the cap, dual clip at the cap."""

    def value(log_prob_BT):
        pairs = [[bounds(math.exp(x), low, high) for x in row] for row in batch.old_BT.tolist()]
        low_BT, high_BT = torch.tensor(pairs, dtype=torch.float64).unbind(2)
        ratio_BT = torch.exp(log_prob_BT - batch.old_BT)
        a_B1 = batch.advantage_B.unsqueeze(1)
        return lab.clipped_surrogate(ratio_BT, a_B1, low_BT, high_BT.clip(max=cap), cap)

    return value


@pytest.mark.parametrize("spread", [0.02, 0.3, 1.5])
@pytest.mark.parametrize(("low", "high", "cap"), [(0.16, 0.2, 10.0), (0.05, 0.1, 1.5)])
def test_gradient_is_the_surrogates(lab, spread, low, high, cap):
    batch = lab.make_batch(spread=spread)
    parameters = {"epsilon_low": low, "epsilon_high": high, "ratio_cap": cap}
    lab.assert_gradient(batch, "dac", term(lab, batch, low, high, cap), **parameters)


@pytest.mark.parametrize("advantage", [2.0, -2.0, 0.0])
# Below pi_old = 0.64 the lower bound is 1/2; the upper one passes 10 at pi_old = 0.8 / 360.
@pytest.mark.parametrize(
    "old_prob", [1e-4, 0.8 / 360 - 1e-9, 0.8 / 360 + 1e-9, 0.3, 0.64 - 1e-9, 0.64 + 1e-9, 1.0]
)
def test_gradient_on_both_sides_of_every_branch_point(lab, advantage, old_prob):
    points = [*bounds(old_prob), 10.0]
    batch = lab.at_ratios([p + d for p in points for d in (-1e-6, 1e-6)], advantage, old_prob)
    lab.assert_gradient(batch, "dac", term(lab, batch))


# pi_old = 0.8: low = 0.5 + sqrt(0.2) / 2, high = 0.5 + sqrt(2) / 2. pi_old = 0.1: 0.5 and 2.
@pytest.mark.parametrize(
    ("old_prob", "advantage", "ratio", "kept"),
    [
        (0.8, -1, 0.73, True),
        (0.8, -1, 0.72, False),
        (0.8, 1, 1.2, True),
        (0.8, 1, 1.21, False),
        (0.1, -1, 0.51, True),
        (0.1, -1, 0.49, False),
        (0.1, 1, 1.99, True),
        (0.1, 1, 2.01, False),
        (1e-6, 1, 9.9, True),
        (1e-6, 1, 10.1, False),
        (1e-6, -1, 9.9, True),
        (1e-6, -1, 10.1, False),
    ],
)
def test_values_by_hand(old_prob, advantage, ratio, kept):
    log_ratio = torch.tensor([[math.log(ratio)]], dtype=torch.float64)
    old = torch.full_like(log_ratio, math.log(old_prob))
    c = coefficients("dac", log_ratio, torch.tensor([float(advantage)]), torch.ones(1, 1), old)
    assert c.item() == pytest.approx(ratio if kept else 0.0)


def test_an_impossible_old_token_is_finite():
    inputs = (torch.tensor([[1.0]]), torch.ones(1), torch.ones(1, 1), torch.tensor([[-1e4]]))
    assert coefficients("dac", *inputs).item() == pytest.approx(math.e)
