"""GSPO against autograd of its clipped surrogate as the paper prints it."""

import math

import pytest
import torch

from respo.objectives import coefficients, kernel

BRANCH_RATIOS = [0.5, 1 - 3e-4 - 1e-9, 1 - 3e-4 + 1e-9, 1.0]
BRANCH_RATIOS += [1 + 4e-4 - 1e-9, 1 + 4e-4 + 1e-9, 2.0]


def surrogate(batch, low, high, token_level):
    """GSPO eq. 5: mean over responses of min(s A, clip(s) A), gradient through s = W^(1/T).

    At token level (eq. 13 and 14) s_t = sg(s) pi / sg(pi), summed over tokens and here divided
    by all tokens of the mini-batch.
    """

    def value(log_prob_BT):
        log_ratio_BT = torch.where(batch.mask_BT, log_prob_BT - batch.old_BT, 0.0)
        s_B1 = torch.exp(log_ratio_BT.sum(1, keepdim=True) / batch.mask_BT.sum(1, keepdim=True))
        a_B1 = batch.advantage_B.unsqueeze(1)
        if token_level:
            s_B1 = s_B1.detach() * torch.exp(log_prob_BT - log_prob_BT.detach())
        term = torch.minimum(s_B1 * a_B1, torch.clip(s_B1, 1 - low, 1 + high) * a_B1)
        if token_level:
            return term[batch.mask_BT].sum() / batch.mask_BT.sum()
        return term.mean()

    return value


@pytest.mark.parametrize("spread", [1e-4, 1e-3, 0.3])
@pytest.mark.parametrize(("low", "high"), [(3e-4, 4e-4), (0.1, 0.2)])
@pytest.mark.parametrize("aggregation", ["seq-mean-token-mean", "token-mean"])
def test_gradient_is_the_clipped_surrogates(lab, spread, low, high, aggregation):
    batch = lab.make_batch(spread=spread)
    value = surrogate(batch, low, high, token_level=aggregation == "token-mean")
    expected = lab.textbook_gradient(batch, value)
    actual = lab.loss_gradient(batch, "gspo", aggregation, epsilon_low=low, epsilon_high=high)
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("advantage", [2.0, -2.0, 0.0])
def test_gradient_on_both_sides_of_every_branch_point(lab, advantage):
    batch = lab.make_batch(responses=len(BRANCH_RATIOS), width=4)
    batch.advantage_B[:] = advantage
    ratio_B1 = torch.tensor(BRANCH_RATIOS, dtype=torch.float64).unsqueeze(1)
    batch.log_prob_BT = batch.old_BT + ratio_B1.log()
    expected = lab.textbook_gradient(batch, surrogate(batch, 3e-4, 4e-4, token_level=False))
    actual = lab.loss_gradient(batch, "gspo", "seq-mean-token-mean")
    torch.testing.assert_close(actual, expected, rtol=1e-11, atol=1e-15)
    assert (actual[0] == 0).all() == (advantage <= 0)
    assert (actual[-1] == 0).all() == (advantage >= 0)


def test_values_by_hand():
    # Geometric means of (0.5, 2, 1.0003^3) over 3 tokens: 1.0003; of a single masked pair: 1.1.
    log_ratio = torch.tensor(
        [[math.log(0.5), math.log(2.0), 3 * math.log(1.0003)], [math.log(1.1), 9.0, 9.0]],
        dtype=torch.float64,
    )
    mask = torch.tensor([[1, 1, 1], [1, 0, 0]])
    c = coefficients("gspo", log_ratio, torch.tensor([1.0, -1.0]), mask)
    expected = torch.tensor([[1.0003, 1.0003, 1.0003], [1.1, 0, 0]], dtype=torch.float64)
    torch.testing.assert_close(c, expected)


def test_the_exponent_is_divided_before_it_is_clamped():
    # L = 100 over 100 tokens: s = e, although W = e^100 is far outside the clamp.
    c = coefficients("gspo", torch.ones(1, 100), torch.tensor([-1.0]), torch.ones(1, 100))
    torch.testing.assert_close(c, torch.full((1, 100), math.e))


def test_float32_resolves_the_clip_range_over_long_responses():
    # 16384 tokens each with l = 3.9e-4 or 4.1e-4, on the two sides of log(1 + 4e-4) = 3.9992e-4.
    log_ratio = torch.tensor([[3.9e-4], [4.1e-4]]).expand(2, 16384)
    c = coefficients("gspo", log_ratio, torch.ones(2), torch.ones(2, 16384))
    assert (c[0] > 1).all()
    assert (c[1] == 0).all()


def test_zero_advantage_is_not_clipped():
    log_ratio = torch.tensor([[-0.5], [0.5]])
    c = coefficients("gspo", log_ratio, torch.zeros(2), torch.ones(2, 1))
    torch.testing.assert_close(c, log_ratio.exp())


def test_kernel_clips_by_sign():
    log_w = torch.tensor([-0.01, 0.0, 0.01], dtype=torch.float64)
    assert (kernel("gspo", log_w, +1) == 0).tolist() == [False, False, True]
    assert (kernel("gspo", log_w, -1) == 0).tolist() == [True, False, False]
