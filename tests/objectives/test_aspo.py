"""ASPO against autograd of its three steps as the paper prints them."""

import math

import pytest
import torch

from respo.objectives import kernel

RATIOS = [1e-4, 1 / 3 - 1e-9, 1 / 3 + 1e-9, 0.8 - 1e-9, 0.8 + 1e-9, 1.0]
RATIOS += [1.2 - 1e-9, 1.2 + 1e-9, 3 - 1e-9, 3 + 1e-9, 50.0]


def term(lab, batch, low, high, dual_clip):
    """ASPO, Sec. 6: masking as in GRPO, eq. 3 for A > 0, soft dual clip as CISPO's."""

    def value(log_prob_BT):
        advantage_B1 = batch.advantage_B.unsqueeze(1)
        prob_BT, old_BT = log_prob_BT.exp(), batch.old_BT.exp()
        ratio_BT = prob_BT / old_BT
        flipped_BT = old_BT * prob_BT / (prob_BT**2).detach()
        if dual_clip is not None:
            soft_BT = dual_clip * log_prob_BT
            flipped_BT = torch.where(flipped_BT > dual_clip, soft_BT, flipped_BT)
        kept_BT = ratio_BT <= 1 + high
        pos_BT = kept_BT * flipped_BT * advantage_B1
        neg_BT = lab.clipped_surrogate(ratio_BT, advantage_B1, 1 - low, 1 + high, dual_clip)
        return torch.where(advantage_B1 > 0, pos_BT, neg_BT)

    return value


@pytest.mark.parametrize("spread", [0.02, 0.3, 1.5])
@pytest.mark.parametrize("dual_clip", [None, 3.0, 1.5])
@pytest.mark.parametrize(("low", "high"), [(0.2, 0.2), (0.1, 0.4)])
def test_gradient_is_the_surrogates(lab, spread, low, high, dual_clip):
    batch = lab.make_batch(spread=spread)
    parameters = {"epsilon_low": low, "epsilon_high": high, "dual_clip": dual_clip}
    lab.assert_gradient(batch, "aspo", term(lab, batch, low, high, dual_clip), **parameters)


@pytest.mark.parametrize("advantage", [2.0, -2.0, 0.0])
@pytest.mark.parametrize("dual_clip", [None, 3.0])
def test_gradient_on_both_sides_of_every_branch_point(lab, advantage, dual_clip):
    batch = lab.at_ratios(RATIOS, advantage)
    lab.assert_gradient(batch, "aspo", term(lab, batch, 0.2, 0.2, dual_clip), dual_clip=dual_clip)


# pi_old = 0.9 and pi = 0.1 is the example of Sec. 5.2, where GRPO's weight is 1/9.
@pytest.mark.parametrize(
    ("sign", "ratio", "dual_clip", "expected"),
    [
        (1, 1 / 9, None, 9.0),
        (1, 1 / 9, 3.0, 3.0),
        (1, 0.5, 3.0, 2.0),
        (1, 1.1, 3.0, 1 / 1.1),
        (1, 1.21, 3.0, 0.0),
        (-1, 1 / 9, 3.0, 0.0),
        (-1, 0.81, 3.0, 0.81),
        (-1, 2.9, 3.0, 2.9),
        (-1, 3.1, 3.0, 0.0),
        (-1, 3.1, None, 3.1),
    ],
)
def test_values_by_hand(sign, ratio, dual_clip, expected):
    log_w = torch.tensor([math.log(ratio)], dtype=torch.float64)
    assert kernel("aspo", log_w, sign, dual_clip=dual_clip).item() == pytest.approx(expected)
