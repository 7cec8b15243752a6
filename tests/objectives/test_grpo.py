"""GRPO against autograd of its clipped surrogate as the papers print it."""

import math

import pytest
import torch

from respo.objectives import coefficients, kernel

# Ratios on both sides of every branch point for epsilon 0.2 / 0.28 and dual clip 3.
RATIOS = [0.0001, 0.5, 0.8 - 1e-9, 0.8 + 1e-9, 1.0, 1.2 - 1e-9, 1.2 + 1e-9]
RATIOS += [1.28 - 1e-9, 1.28 + 1e-9, 3 - 1e-9, 3 + 1e-9, 50.0]


def surrogate(batch, epsilon_low, epsilon_high, dual_clip):
    """DeepSeekMath eq. 3 without KL, token mean; dual clip as in Ye et al. 2020, for A < 0."""

    def value(log_prob_BT):
        ratio_BT = torch.exp(log_prob_BT - batch.old_BT)
        a_B1 = batch.advantage_B.unsqueeze(1)
        clipped_BT = torch.clip(ratio_BT, 1 - epsilon_low, 1 + epsilon_high)
        term_BT = torch.minimum(ratio_BT * a_B1, clipped_BT * a_B1)
        if dual_clip is not None:
            term_BT = torch.where(a_B1 < 0, torch.maximum(term_BT, dual_clip * a_B1), term_BT)
        return term_BT[batch.mask_BT].sum() / batch.mask_BT.sum()

    return value


@pytest.mark.parametrize("spread", [0.02, 0.3, 1.5])
@pytest.mark.parametrize("dual_clip", [None, 3.0])
@pytest.mark.parametrize(("low", "high"), [(0.2, 0.2), (0.2, 0.28), (0.0, 0.5), (1.0, 0.2)])
def test_gradient_is_the_clipped_surrogates(lab, spread, low, high, dual_clip):
    batch = lab.make_batch(spread=spread)
    expected = lab.textbook_gradient(batch, surrogate(batch, low, high, dual_clip))
    actual = lab.loss_gradient(
        batch, "grpo", epsilon_low=low, epsilon_high=high, dual_clip=dual_clip
    )
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("advantage", [2.0, -2.0, 0.0])
@pytest.mark.parametrize("dual_clip", [None, 3.0])
@pytest.mark.parametrize("high", [0.2, 0.28])
def test_gradient_on_both_sides_of_every_branch_point(lab, advantage, dual_clip, high):
    batch = lab.make_batch(responses=1, width=len(RATIOS))
    batch.mask_BT[:] = True
    batch.advantage_B[:] = advantage
    batch.log_prob_BT = batch.old_BT + torch.tensor([RATIOS], dtype=torch.float64).log()
    expected = lab.textbook_gradient(batch, surrogate(batch, 0.2, high, dual_clip))
    actual = lab.loss_gradient(batch, "grpo", epsilon_high=high, dual_clip=dual_clip)
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-15)


# By hand from the case distinction: (sign of A, ratio, dual clip) -> c.
@pytest.mark.parametrize(
    ("sign", "ratio", "dual_clip", "expected"),
    [
        (1, 1.19, None, 1.19),
        (1, 1.21, None, 0.0),
        (1, 0.01, None, 0.01),
        (-1, 0.81, None, 0.81),
        (-1, 0.79, None, 0.0),
        (-1, 100.0, None, 100.0),
        (-1, 2.9, 3.0, 2.9),
        (-1, 3.1, 3.0, 0.0),
        (1, 0.5, 3.0, 0.5),
    ],
)
def test_values_by_hand(sign, ratio, dual_clip, expected):
    log_w = torch.tensor([math.log(ratio)], dtype=torch.float64)
    assert kernel("grpo", log_w, sign, dual_clip=dual_clip).item() == pytest.approx(expected)


def test_zero_advantage_is_not_clipped():
    log_ratio = torch.tensor([[math.log(0.1), math.log(5.0)]])
    c = coefficients("grpo", log_ratio, torch.zeros(1), torch.ones(1, 2), dual_clip=3.0)
    torch.testing.assert_close(c, torch.tensor([[0.1, 5.0]]))
