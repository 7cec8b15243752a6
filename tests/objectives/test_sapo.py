"""SAPO against autograd of its sigmoid surrogate as the paper prints it."""

import math

import pytest
import torch

from respo.objectives import kernel


def term(batch, tau_pos, tau_neg):
    """SAPO, Sec. 3: f(r) A with f(r) = sigmoid(tau (r - 1)) 4 / tau."""

    def value(log_prob_BT):
        ratio_BT = torch.exp(log_prob_BT - batch.old_BT)
        a_B1 = batch.advantage_B.unsqueeze(1)
        pos_BT = torch.sigmoid(tau_pos * (ratio_BT - 1)) * 4 / tau_pos
        neg_BT = torch.sigmoid(tau_neg * (ratio_BT - 1)) * 4 / tau_neg
        return torch.where(a_B1 > 0, pos_BT, neg_BT) * a_B1

    return value


@pytest.mark.parametrize("spread", [0.02, 0.3, 1.0])
@pytest.mark.parametrize(("tau_pos", "tau_neg"), [(1.0, 1.05), (0.5, 3.0)])
def test_gradient_is_the_surrogates(lab, spread, tau_pos, tau_neg):
    batch = lab.make_batch(spread=spread)
    parameters = {"tau_pos": tau_pos, "tau_neg": tau_neg}
    lab.assert_gradient(batch, "sapo", term(batch, tau_pos, tau_neg), **parameters)


def test_gradient_over_responses_first(lab):
    batch = lab.make_batch()

    def value(log_prob_BT):
        term_BT = torch.where(batch.mask_BT, term(batch, 1.0, 1.05)(log_prob_BT), 0.0)
        return (term_BT.sum(1) / batch.mask_BT.sum(1)).mean()

    expected = lab.textbook_gradient(batch, value)
    actual = lab.loss_gradient(batch, "sapo", "seq-mean-token-mean")
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("advantage", [1e-9, -1e-9, 0.0])
def test_gradient_on_both_sides_of_a_zero_advantage(lab, advantage):
    batch = lab.at_ratios([0.1, 1 - 1e-9, 1.0, 1 + 1e-9, 10.0], advantage)
    lab.assert_gradient(batch, "sapo", term(batch, 1.0, 1.05))


# At r = 1 the gate is 1/2: 4 / 4. At r = 1 + log 3 it is 3/4: 4 * 3/16.
@pytest.mark.parametrize(("ratio", "expected"), [(1.0, 1.0), (1 + math.log(3), 0.75)])
def test_values_by_hand(ratio, expected):
    log_w = torch.tensor([math.log(ratio)], dtype=torch.float64)
    assert kernel("sapo", log_w, 1).item() == pytest.approx(expected * ratio)


def test_float32_keeps_its_digits_where_the_gate_is_almost_open():
    # 1 - p = 1 / (1 + e^10) would lose 3 of 7 digits if it were computed as a difference.
    log_w = torch.tensor([math.log(11.0)], dtype=torch.float64)
    exact = 4 * 11 / (1 + math.exp(10)) / (1 + math.exp(-10))
    assert kernel("sapo", log_w.float(), 1).item() == pytest.approx(exact, rel=1e-5)
