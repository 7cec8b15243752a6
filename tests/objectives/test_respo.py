"""ReSPO against closed forms and the power mean in linear space and 60 digits."""

import math

import mpmath
import pytest
import torch

from respo.objectives import coefficients, kernel

GRID = torch.linspace(-5, 5, 101, dtype=torch.float64)


def general(alpha, beta, lambda_, sign=1):
    """Parameters of the kernel on one sign."""
    suffix = "pos" if sign > 0 else "neg"
    return {f"alpha_{suffix}": alpha, f"beta_{suffix}": beta, f"lambda_{suffix}": lambda_}


def exact(log_w, alpha, beta, lambda_):
    """The kernel of eq. 9 and 12 in linear space with 60 digits."""
    with mpmath.workdps(60):
        w, order = mpmath.exp(log_w), mpmath.mpf(alpha) - 1
        if order == 0:
            phi0 = w**beta
        else:
            phi0 = ((1 - mpmath.mpf(beta)) + beta * w**order) ** (1 / order)
        return float(phi0 * mpmath.exp(lambda_ * (1 - phi0)))


def surrogate(batch):
    """Token mean of sg(phi(W)) * A * log pi with the published kernels in closed form (App. B)."""

    def value(log_prob_BT):
        log_ratio_BT = torch.where(batch.mask_BT, log_prob_BT - batch.old_BT, 0.0)
        w_B = torch.exp(log_ratio_BT).prod(dim=1)
        pos_B = (1 + w_B) / 2 * torch.exp(1 - w_B)
        neg_B = torch.sqrt(w_B) * torch.exp(2 * (1 - torch.sqrt(w_B)))
        kernel_B = torch.where(batch.advantage_B > 0, pos_B, neg_B).detach()
        term_BT = (kernel_B * batch.advantage_B).unsqueeze(1) * log_prob_BT
        return term_BT[batch.mask_BT].sum() / batch.mask_BT.sum()

    return value


@pytest.mark.parametrize("spread", [0.02, 0.3, 1.0])
def test_gradient_is_the_surrogates(lab, spread):
    batch = lab.make_batch(spread=spread)
    expected = lab.textbook_gradient(batch, surrogate(batch))
    actual = lab.loss_gradient(batch, "respo")
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-15)


# 1.359 = e/2 and 1.348: ReSPO, App. E.3; 1 at W = 1: App. A. The others by hand.
@pytest.mark.parametrize(
    ("log_w", "sign", "expected", "digits"),
    [
        (-20.0, +1, 1.359, 3),
        (-2.0, +1, 1.348, 3),
        (0.0, +1, 1.0, 12),
        (0.0, -1, 1.0, 12),
        (math.log(3), +1, 2 * math.exp(-2), 12),
        (math.log(4), -1, 2 * math.exp(-2), 12),
        (math.log(1 / 4), -1, 0.5 * math.e, 12),
    ],
)
def test_published_values(log_w, sign, expected, digits):
    value = kernel("respo", torch.tensor([log_w], dtype=torch.float64), sign).item()
    assert round(value, digits) == pytest.approx(expected, abs=10**-12)


def test_tails():
    # phi+(0) = e/2 while phi+(inf) = phi-(0) = phi-(inf) = 0 (ReSPO, Sec. 3). The clamp at
    # |log W| = 20 leaves sqrt(W) at e^-10.
    tails = torch.tensor([-1e4, 1e4], dtype=torch.float64)
    pos, neg = kernel("respo", tails, +1), kernel("respo", tails, -1)
    assert pos[0].item() == pytest.approx(math.e / 2, abs=1e-8)
    assert pos[1].item() == 0
    assert neg[0].item() == pytest.approx(math.exp(-10 + 2 * (1 - math.exp(-10))))
    assert neg[1].item() == 0


@pytest.mark.parametrize(
    "alpha",
    [-3.0, 0.0, 0.5, 0.999, 1 + 1e-6, 1 + 1e-9, 1 - 1e-13, 1.0, 1.5, 2.0, 40.0],
)
@pytest.mark.parametrize("beta", [0.0, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("lambda_", [0.5, 2.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_general_kernel_is_the_linear_space_formula(alpha, beta, lambda_, sign):
    log_w = torch.tensor([-20, -5, -1, -1e-3, 0, 1e-3, 0.7, 4, 19], dtype=torch.float64)
    expected = [exact(value, alpha, beta, lambda_) for value in log_w.tolist()]
    actual = kernel("respo", log_w, sign, **general(alpha, beta, lambda_, sign))
    # Near alpha = 1 the division costs digits: 1e-10 in log phi0, times lambda * phi0.
    torch.testing.assert_close(
        actual, torch.tensor(expected, dtype=torch.float64), rtol=2e-6, atol=1e-9
    )


@pytest.mark.parametrize("step", [1e-4, -1e-4])
@pytest.mark.parametrize("sign", [1, -1])
def test_near_alpha_one_the_general_form_agrees_with_the_limit(step, sign):
    limit = kernel("respo", GRID, sign, **general(1.0, 0.5, 2.0, sign))
    near = kernel("respo", GRID, sign, **general(1.0 + step, 0.5, 2.0, sign))
    torch.testing.assert_close(near, limit, rtol=0, atol=1e-3)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_beta_one_is_a_tilted_weight_and_beta_zero_is_constant(alpha):
    w = GRID.exp()
    tilted = kernel("respo", GRID, 1, **general(alpha, 1.0, 2.0))
    torch.testing.assert_close(tilted, w * torch.exp(2 * (1 - w)), rtol=1e-11, atol=1e-15)
    constant = kernel("respo", GRID, 1, **general(alpha, 0.0, 2.0))
    torch.testing.assert_close(constant, torch.ones_like(GRID), rtol=1e-14, atol=0)


def test_beta_one_equals_vespo_with_beta_one():
    vespo = kernel("vespo", GRID, -1, beta_neg=1.0, lambda_neg=2.0)
    respo = kernel("respo", GRID, -1, **general(1.0, 1.0, 2.0, -1))
    torch.testing.assert_close(respo, vespo)


def test_alpha_one_half_by_hand():
    # W = 4, beta = 0.5: (0.5 + 0.5 / 2)^-2 = 16/9.
    value = kernel("respo", torch.tensor([math.log(4.0)]), 1, **general(0.5, 0.5, 1.5)).item()
    assert value == pytest.approx(16 / 9 * math.exp(1.5 * (1 - 16 / 9)), rel=1e-6)


def test_signs_use_their_own_parameters():
    log_ratio = torch.full((2, 1), 1.0, dtype=torch.float64)
    c = coefficients(
        "respo",
        log_ratio,
        torch.tensor([1.0, -1.0]),
        torch.ones(2, 1),
        **general(3.0, 0.2, 0.7, +1),
        **general(1.0, 0.9, 0.1, -1),
    )
    expected = [exact(1.0, 3.0, 0.2, 0.7), exact(1.0, 1.0, 0.9, 0.1)]
    assert c.flatten().tolist() == pytest.approx(expected)


def test_zero_advantage_is_finite():
    log_ratio = torch.tensor([[300.0], [-300.0]])
    assert coefficients("respo", log_ratio, torch.zeros(2), torch.ones(2, 1)).isfinite().all()
