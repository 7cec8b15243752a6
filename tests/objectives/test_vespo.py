"""VESPO against the closed form of its kernel."""

import math

import pytest
import torch

from respo.objectives import coefficients, kernel


def phi(weight, beta, lambda_):
    """W^beta exp(lambda (1 - W)), in linear space as the ReSPO paper prints it (App. A)."""
    return weight**beta * torch.exp(lambda_ * (1 - weight))


def surrogate(batch, pos, neg):
    """Token mean of sg(phi(W)) * A * log pi."""

    def value(log_prob_BT):
        log_ratio_BT = torch.where(batch.mask_BT, log_prob_BT - batch.old_BT, 0.0)
        weight_B = torch.exp(log_ratio_BT).prod(dim=1)
        kernel_B = torch.where(batch.advantage_B > 0, phi(weight_B, *pos), phi(weight_B, *neg))
        term_BT = (kernel_B.detach() * batch.advantage_B).unsqueeze(1) * log_prob_BT
        return term_BT[batch.mask_BT].sum() / batch.mask_BT.sum()

    return value


@pytest.mark.parametrize("spread", [0.02, 0.3, 1.0])
@pytest.mark.parametrize(("pos", "neg"), [((2, 3), (3, 2)), ((1, 0), (0, 1.5))])
def test_gradient_is_the_surrogates(lab, spread, pos, neg):
    batch = lab.make_batch(spread=spread)
    expected = lab.textbook_gradient(batch, surrogate(batch, pos, neg))
    parameters = dict(
        zip(("beta_pos", "lambda_pos", "beta_neg", "lambda_neg"), (*pos, *neg), strict=True)
    )
    actual = lab.loss_gradient(batch, "vespo", **parameters)
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-15)


# 0.245 and 0.006: ReSPO, App. E.3. The others by hand from the closed form.
@pytest.mark.parametrize(
    ("log_w", "sign", "expected", "digits"),
    [
        (-2.0, +1, 0.245, 3),
        (-4.0, +1, 0.006, 3),
        (0.0, +1, 1.0, 12),
        (0.0, -1, 1.0, 12),
        (math.log(2), +1, 4 * math.exp(-3), 12),
        (math.log(2), -1, 8 * math.exp(-2), 12),
        (math.log(0.5), -1, 0.125 * math.e, 12),
    ],
)
def test_published_values(log_w, sign, expected, digits):
    value = kernel("vespo", torch.tensor([log_w], dtype=torch.float64), sign).item()
    assert round(value, digits) == pytest.approx(expected, abs=10**-12)


@pytest.mark.parametrize("sign", [1, -1])
def test_both_tails_vanish(sign):
    c = kernel("vespo", torch.tensor([-20.0, 20.0, -1e4, 1e4]), sign)
    assert (c < 1e-15).all()
    assert (c >= 0).all()


def test_zero_advantage_is_finite():
    log_ratio = torch.tensor([[300.0], [-300.0]])
    assert coefficients("vespo", log_ratio, torch.zeros(2), torch.ones(2, 1)).isfinite().all()


def test_without_a_tilt_the_weight_is_capped():
    # W^3 at the clamp would be e^60; the kernel's own exponent is held at 20 too.
    c = kernel("vespo", torch.tensor([50.0]), 1, beta_pos=3, lambda_pos=0)
    assert c.item() == pytest.approx(math.exp(20))
