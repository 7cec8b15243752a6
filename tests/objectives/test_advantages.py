"""Group advantages: by hand, float noise, bad groups."""

import math

import pytest
import torch

from respo.objectives import group_advantages


def test_by_hand():
    # Group 1: mean 0, deviations of one, squares sum to 4, std = sqrt(4/3).
    # Group 2: one of four right, mean -0.5, std = 1.
    reward = torch.tensor([1.0, 1.0, -1.0, -1.0, 1.0, -1.0, -1.0, -1.0], dtype=torch.float64)
    a = 1 / (math.sqrt(4 / 3) + 1e-6)
    expected = [a, a, -a, -a] + [b / (1 + 1e-6) for b in (1.5, -0.5, -0.5, -0.5)]
    assert group_advantages(reward, 4).tolist() == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("value", [0.7, 0.1, -1.0, 0.0, 1e6 + 0.1])
@pytest.mark.parametrize("size", [2, 3, 5, 7, 8, 10, 16])
def test_equal_rewards_give_exactly_zero(value, size, dtype):
    reward = torch.full((2 * size,), value, dtype=dtype)
    assert (group_advantages(reward, size) == 0).all()


def test_a_tiny_but_real_spread_is_normalised():
    # 1, 1.00001, ..., 1.00007: std of 0..7 is sqrt(6), scaled by 1e-5.
    reward = 1 + 1e-5 * torch.arange(8, dtype=torch.float64)
    deviation = 1e-5 * (torch.arange(8, dtype=torch.float64) - 3.5)
    expected = deviation / (1e-5 * math.sqrt(6) + 1e-6)
    torch.testing.assert_close(group_advantages(reward, 8), expected, rtol=1e-9, atol=0)


def test_only_the_equal_group_is_zero():
    advantage = group_advantages(torch.tensor([0.7, 0.7, 0.7, 0.7, 1.0, 0.7]), 3)
    assert (advantage[:3] == 0).all()
    assert (advantage[3:] != 0).all()


def test_dtype_is_kept_and_integers_are_taken():
    assert group_advantages(torch.tensor([1.0, 0.0]), 2).dtype == torch.float32
    assert group_advantages(torch.tensor([1, -1]), 2).tolist() == pytest.approx(
        [1 / math.sqrt(2), -1 / math.sqrt(2)], rel=1e-5
    )


@pytest.mark.parametrize(
    ("reward", "group_size", "message"),
    [
        (torch.ones(4), 1, "group_size = 1: a group needs at least 2"),
        (torch.ones(4), 0, "group_size = 0"),
        (torch.ones(4), 3, r"shape \(4,\): expected \(B,\) with B a multiple of group_size = 3"),
        (torch.ones(2, 2), 2, r"shape \(2, 2\)"),
        (torch.tensor([1.0, float("nan")]), 2, "NaN or infinite"),
        (torch.tensor([1.0, float("inf")]), 2, "NaN or infinite"),
    ],
)
def test_bad_groups_are_refused(reward, group_size, message):
    with pytest.raises(ValueError, match=message):
        group_advantages(reward, group_size)
