"""One-sided SAPO against autograd, and where it is SAPO and where the plain ratio."""

import pytest
import torch

from respo.objectives import kernel


def term(batch, tau_pos, tau_neg):
    """MASPO, App. D.2: SAPO's gate only where the update drives the ratio away from 1."""

    def value(log_prob_BT):
        ratio_BT = torch.exp(log_prob_BT - batch.old_BT)
        a_B1 = batch.advantage_B.unsqueeze(1)
        pos_BT = torch.sigmoid(tau_pos * (ratio_BT - 1)) * 4 / tau_pos
        neg_BT = torch.sigmoid(tau_neg * (ratio_BT - 1)) * 4 / tau_neg
        used_BT = torch.where((a_B1 > 0) & (ratio_BT > 1), pos_BT, ratio_BT)
        return torch.where((a_B1 < 0) & (ratio_BT < 1), neg_BT, used_BT) * a_B1

    return value


@pytest.mark.parametrize("spread", [0.02, 0.3, 1.0])
@pytest.mark.parametrize(("tau_pos", "tau_neg"), [(1.0, 1.05), (0.5, 3.0)])
def test_gradient_is_the_surrogates(lab, spread, tau_pos, tau_neg):
    batch = lab.make_batch(spread=spread)
    parameters = {"tau_pos": tau_pos, "tau_neg": tau_neg}
    lab.assert_gradient(batch, "sapo_unilateral", term(batch, tau_pos, tau_neg), **parameters)


@pytest.mark.parametrize("advantage", [2.0, -2.0, 1e-9, -1e-9, 0.0])
def test_gradient_on_both_sides_of_every_branch_point(lab, advantage):
    batch = lab.at_ratios([0.1, 1 - 1e-9, 1 + 1e-9, 10.0], advantage)
    lab.assert_gradient(batch, "sapo_unilateral", term(batch, 1.0, 1.05))


@pytest.mark.parametrize("sign", [1, -1])
def test_sapo_away_from_one_and_the_ratio_towards_it(sign):
    log_w = torch.linspace(-3, 3, 61, dtype=torch.float64)
    c = kernel("sapo_unilateral", log_w, sign)
    away = sign * log_w > 0
    torch.testing.assert_close(c[away], kernel("sapo", log_w, sign)[away], rtol=0, atol=0)
    torch.testing.assert_close(c[~away], log_w.exp()[~away], rtol=0, atol=0)
