"""GRPO with the mean ratio of positive responses against autograd, and by hand."""

import pytest
import torch

from respo.objectives import coefficients


def term(lab, batch, low, high, dual_clip):
    """ASPO, Sec. 5.3: for A > 0 the response's mean ratio, detached, stands for each token's."""

    def value(log_prob_BT):
        ratio_BT = torch.exp(log_prob_BT - batch.old_BT)
        tokens = batch.mask_BT.sum(1, keepdim=True)
        mean_B1 = torch.where(batch.mask_BT, ratio_BT, 0.0).sum(1, keepdim=True) / tokens
        straight_through_BT = torch.exp(log_prob_BT - log_prob_BT.detach())
        advantage_B1 = batch.advantage_B.unsqueeze(1)
        used_BT = torch.where(advantage_B1 > 0, mean_B1.detach() * straight_through_BT, ratio_BT)
        return lab.clipped_surrogate(used_BT, advantage_B1, 1 - low, 1 + high, dual_clip)

    return value


@pytest.mark.parametrize("spread", [0.02, 0.3, 1.0])
@pytest.mark.parametrize(("low", "high"), [(0.2, 0.2), (0.1, 0.05)])
@pytest.mark.parametrize("dual_clip", [None, 3.0])
def test_gradient_is_the_surrogates(lab, spread, low, high, dual_clip):
    batch = lab.make_batch(spread=spread)
    parameters = {"epsilon_low": low, "epsilon_high": high, "dual_clip": dual_clip}
    lab.assert_gradient(
        batch, "grpo_pos_mean_is", term(lab, batch, low, high, dual_clip), **parameters
    )


@pytest.mark.parametrize("mean", [1.2 - 1e-9, 1.2 + 1e-9])
def test_both_sides_of_the_bound_on_the_mean(lab, mean):
    # Single ratios lie far on both sides of the bound; the mean alone decides.
    batch = lab.at_ratios([0.2, 2.2, 3 * mean - 2.4], advantage=1.0)
    lab.assert_gradient(batch, "grpo_pos_mean_is", term(lab, batch, 0.2, 0.2, None))
    gradient = lab.loss_gradient(batch, "grpo_pos_mean_is")
    assert (gradient == 0).all() == (mean > 1.2)


@pytest.mark.parametrize("ratio", [0.8 - 1e-9, 0.8 + 1e-9, 3 - 1e-9, 3 + 1e-9])
def test_negative_responses_are_clipped_by_token(lab, ratio):
    batch = lab.at_ratios([1.0, ratio], advantage=-1.0)
    lab.assert_gradient(batch, "grpo_pos_mean_is", term(lab, batch, 0.2, 0.2, 3.0), dual_clip=3.0)


def test_by_hand():
    # The mean of 0.5 and 1.5 is 1, whatever the masked third is; A < 0 keeps the tokens' own.
    ratio_BT = torch.tensor([[0.5, 1.5, 9.0], [0.9, 1.5, 9.0]])
    mask_BT = torch.tensor([[1, 1, 0], [1, 1, 0]])
    c = coefficients("grpo_pos_mean_is", ratio_BT.log(), torch.tensor([1.0, -1.0]), mask_BT)
    torch.testing.assert_close(c, torch.tensor([[1.0, 1.0, 0.0], [0.9, 1.5, 0.0]]))
