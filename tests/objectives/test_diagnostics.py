"""Sums by sign and by bin of log W: by hand, edges, and that they add up."""

import math

import pytest
import torch

from respo.objectives import (
    LOG_W_EDGES,
    branch_sums,
    coefficient_metrics,
    coefficient_sums,
    coefficients,
    ratio_metrics,
    ratio_sums,
)

NAN = float("nan")


def test_coefficient_sums_by_hand():
    coefficient_BT = torch.tensor([[1.0, 0.0, NAN], [0.0, 0.0, 3.0], [9.0, 0.0, 0.0]])
    mask_BT = torch.tensor([[1, 1, 0], [1, 1, 1], [1, 1, 1]])
    sums = coefficient_sums(coefficient_BT, torch.tensor([0.5, -2.0, 0.0]), mask_BT)
    assert sums["tokens"].tolist() == [2, 3]
    assert sums["clipped"].tolist() == [1, 2]
    assert sums["coefficient"].tolist() == [1.0, 3.0]
    metrics = coefficient_metrics(sums)
    assert metrics == {
        "clip_fraction_pos": 1 / 2,
        "coefficient_mean_pos": 1 / 2,
        "clip_fraction_neg": pytest.approx(2 / 3),
        "coefficient_mean_neg": 1.0,
    }


def test_a_sign_without_tokens_has_no_fraction():
    metrics = coefficient_metrics(
        coefficient_sums(torch.ones(1, 2), torch.ones(1), torch.ones(1, 2))
    )
    assert metrics["clip_fraction_pos"] == 0
    assert math.isnan(metrics["clip_fraction_neg"])
    assert math.isnan(metrics["coefficient_mean_neg"])


def test_ratios_of_responses_by_hand():
    # Means of the ratios over each response's own tokens: (2 + 4) / 2, 1 / 2, 8, and advantage 0.
    ratio_BT = torch.tensor([[2.0, 4.0, NAN], [0.5, 0.0, 0.0], [8.0, 8.0, 8.0], [9.0, 9.0, 9.0]])
    mask_BT = torch.tensor([[1, 1, 0], [1, 0, 0], [1, 1, 1], [1, 1, 1]])
    advantage_B = torch.tensor([0.5, 2.0, -1.0, 0.0])
    sums = ratio_sums(advantage_B, mask_BT, ratio_BT.log())
    assert sums["responses"].tolist() == [2, 1]
    assert ratio_metrics(sums) == {
        "ratio_mean_pos": pytest.approx((3 + 0.5) / 2, rel=1e-6),
        "ratio_mean_neg": pytest.approx(8, rel=1e-6),
    }


def test_ratios_are_finite_and_nan_without_responses():
    huge = ratio_sums(torch.ones(2), torch.tensor([[1, 1], [0, 0]]), torch.full((2, 2), 100.0))
    assert huge["responses"].tolist() == [1, 0]  # the second has no valid token
    assert ratio_metrics(huge)["ratio_mean_pos"] == pytest.approx(math.exp(20))
    assert math.isnan(ratio_metrics(huge)["ratio_mean_neg"])


# Half-open on the left, as the ReSPO paper writes its bins (-5 < log W <= -2).
@pytest.mark.parametrize(
    ("log_w", "expected"),
    [
        (-100.0, 0),
        (-5.0, 0),
        (-4.99, 1),
        (-2.0, 1),
        (-1.0, 2),
        (-0.5, 3),
        (-0.49, 4),
        (0.0, 4),
        (1e-6, 5),
        (0.5, 5),
        (1.0, 6),
        (2.0, 7),
        (5.0, 8),
        (5.01, 9),
        (math.inf, 9),
        (-math.inf, 0),
    ],
)
def test_bin_edges(log_w, expected):
    one = torch.ones(1, 1)
    sums = branch_sums(one, torch.ones(1), one, torch.tensor([[log_w]]))
    assert sums["responses"].shape == (2, len(LOG_W_EDGES) - 1)
    assert sums["responses"][0].tolist() == [int(i == expected) for i in range(10)]
    assert sums["responses"][1].sum() == 0


def test_branch_sums_by_hand():
    # log W: 0.3 (pos), 0.3 (pos), -3 (neg), 0.3 (A = 0), no tokens (pos).
    log_ratio_BT = torch.tensor([[0.1, 0.2], [0.3, NAN], [-1.0, -2.0], [0.3, 0.0], [NAN, NAN]])
    mask_BT = torch.tensor([[1, 1], [1, 0], [1, 1], [1, 1], [0, 0]])
    # A token-level objective: the first response's c averages to 2.
    coefficient_BT = torch.tensor([[1.0, 3.0], [0.5, NAN], [4.0, 4.0], [1.0, 1.0], [NAN, NAN]])
    sums = branch_sums(
        coefficient_BT, torch.tensor([2.0, 1.0, -0.5, 0.0, 1.0]), mask_BT, log_ratio_BT
    )
    assert sums["responses"].dtype == sums["tokens"].dtype == torch.int64
    assert sums["coefficient_mass"].dtype == torch.float64
    expected = {"responses": (2, 1), "tokens": (3, 2), "coefficient_mass": (4.5, 2.0)}
    for key, (pos, neg) in expected.items():
        table = torch.zeros_like(sums[key])
        table[0, 5], table[1, 1] = pos, neg
        assert torch.equal(sums[key], table), key


def test_sums_add_up_over_micro_batches(lab):
    batch = lab.make_batch(spread=0.8)
    log_ratio_BT = batch.log_prob_BT - batch.old_BT
    c_BT = coefficients("respo", log_ratio_BT, batch.advantage_B, batch.mask_BT)

    def sums(rows):
        clip = coefficient_sums(c_BT[rows], batch.advantage_B[rows], batch.mask_BT[rows])
        bins = branch_sums(
            c_BT[rows], batch.advantage_B[rows], batch.mask_BT[rows], log_ratio_BT[rows]
        )
        return {"clip_tokens": clip["tokens"], "clipped": clip["clipped"], **bins}

    whole, first, second = sums(slice(None)), sums(slice(0, 9)), sums(slice(9, None))
    assert whole["responses"].sum() == (batch.advantage_B != 0).sum()
    for key, total in whole.items():
        torch.testing.assert_close(first[key] + second[key], total, rtol=1e-12, atol=1e-12)
