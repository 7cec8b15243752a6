"""Log-ratios: sanitised, summed before the clamp, counted."""

import pytest
import torch

from respo.objectives import clamped_exponents, sequence_log_weight
from respo.objectives.ratios import clamp_exponent, mean_log_ratio, sequence_log_ratio

NAN, INF = float("nan"), float("inf")


def test_sums_and_means_over_valid_tokens():
    log_ratio_BT = torch.tensor([[1.0, 2.0, NAN], [INF, -INF, NAN], [30.0, -28.0, 1.0]])
    mask_BT = torch.tensor([[1, 1, 0], [0, 0, 0], [1, 1, 1]]).bool()
    # The third: 30 is not cut to 20 before it is summed.
    assert sequence_log_ratio(log_ratio_BT, mask_BT).flatten().tolist() == [3.0, 0.0, 3.0]
    assert mean_log_ratio(log_ratio_BT, mask_BT).flatten().tolist() == [1.5, 0.0, 1.0]
    assert sequence_log_weight(log_ratio_BT, mask_BT.float()).tolist() == [3.0, 0.0, 3.0]


def test_sums_are_taken_in_float64():
    # 16384 times float32(0.1) plus one 1e4: float32 sums would be off in the fifth digit.
    log_ratio_BT = torch.full((1, 16385), 0.1)
    log_ratio_BT[0, 0] = 1e4
    expected = 1e4 + 16384 * float(torch.tensor(0.1))
    total = sequence_log_ratio(log_ratio_BT, torch.ones_like(log_ratio_BT).bool())
    assert total.item() == pytest.approx(expected, rel=1e-12)


def test_clamp():
    values = torch.tensor([-INF, -20.5, -20.0, 3.0, 20.0, 20.5, INF])
    assert clamp_exponent(values).tolist() == [-20, -20, -20, 3, 20, 20, 20]
    assert clamp_exponent(torch.tensor([NAN])).isnan().all()


def test_clamps_are_counted_where_the_objective_exponentiates():
    # Tokens beyond 20: three valid ones; responses with |L| > 20: the first two; |L/T| > 20: one.
    log_ratio_BT = torch.tensor([[15.0, 15.0], [-50.0, 0.0], [30.0, -30.0], [1.0, 99.0]])
    mask_BT = torch.tensor([[1, 1], [1, 1], [1, 1], [1, 0]])
    assert clamped_exponents("grpo", log_ratio_BT, mask_BT) == 3
    assert clamped_exponents("gspo", log_ratio_BT, mask_BT) == 1
    assert clamped_exponents("vespo", log_ratio_BT, mask_BT) == 2
    assert clamped_exponents("respo", log_ratio_BT, mask_BT) == 2
