"""What holds for every objective: splits, order, padding, masked garbage, extremes, precision."""

from types import SimpleNamespace

import pytest
import torch

from respo.objectives import (
    AGGREGATIONS,
    batch_sums,
    clamped_exponents,
    coefficients,
    needs,
    objective_names,
    parameter_defaults,
    policy_loss,
    registry,
    token_weights,
)
from respo.objectives.ratios import EXPONENTS

NAMES = objective_names()
WITH_PARAMETERS = [(name, key) for name in NAMES for key in parameter_defaults(name)]
GARBAGE = [float("inf"), float("-inf"), float("nan"), 100.0, -100.0]


def tensors(batch, rows=slice(None)):
    """The arguments of `coefficients` and `batch_sums` for some responses of a batch."""
    return (
        (
            (batch.log_prob_BT - batch.old_BT)[rows].detach(),
            batch.advantage_B[rows],
            batch.mask_BT[rows],
            batch.old_BT[rows],
        ),
        {"entropy_BT": batch.entropy_BT[rows]},
    )


def coefficient(name, batch, **parameters):
    positional, keyword = tensors(batch)
    return coefficients(name, *positional, **keyword, **parameters)


def from_log_ratios(log_ratio_BT, advantage_B, mask_BT=None):
    """A batch of given log-ratios with pi_old = 1/e and entropies from 0 to 3 nats."""
    old_BT = torch.full_like(log_ratio_BT, -1.0)
    entropy_BT = torch.linspace(0, 3, log_ratio_BT.numel(), dtype=log_ratio_BT.dtype)
    return SimpleNamespace(
        old_BT=old_BT,
        # Exact for every log-ratio that these tests use.
        log_prob_BT=old_BT + log_ratio_BT,
        entropy_BT=entropy_BT.view_as(log_ratio_BT),
        advantage_B=torch.as_tensor(advantage_B, dtype=log_ratio_BT.dtype),
        mask_BT=torch.ones_like(log_ratio_BT, dtype=torch.bool) if mask_BT is None else mask_BT,
    )


def loss_and_gradient(name, batch, aggregation, parts):
    """Sum of the losses of micro-batches, and its gradient; `parts` are lists of row numbers."""
    sums = [
        batch_sums(name, *positional, **keyword)
        for positional, keyword in (tensors(batch, rows) for rows in parts)
    ]
    sums = None if sums[0] is None else sum(sums)
    leaf_BT = batch.log_prob_BT.clone().requires_grad_()
    total = torch.zeros((), dtype=leaf_BT.dtype)
    for rows in parts:
        positional, keyword = tensors(batch, rows)
        c_BT = coefficients(name, *positional, **keyword, batch_sums=sums)
        weight_B = token_weights(
            aggregation,
            batch.mask_BT[rows],
            batch_tokens=int(batch.mask_BT.sum()),
            batch_responses=len(batch.mask_BT),
            max_response_tokens=batch.max_response_tokens,
        )
        loss = policy_loss(
            leaf_BT[rows], c_BT, batch.advantage_B[rows], batch.mask_BT[rows], weight_B
        )
        loss.backward()
        total = total + loss.detach()
    return total, leaf_BT.grad


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("name", NAMES)
def test_loss_does_not_depend_on_split_order_padding_or_masked_values(lab, name, aggregation):
    batch = lab.make_batch()
    # As many positive as negative responses, so that what adapts to them does adapt.
    batch.advantage_B[::3] *= -1
    batch.mask_BT[5] = False  # a response without tokens
    responses, width = batch.mask_BT.shape
    everything = list(range(responses))
    whole = loss_and_gradient(name, batch, aggregation, [everything])
    assert whole[1].abs().max() > 0

    def assert_whole(loss, gradient_BT):
        torch.testing.assert_close((loss, gradient_BT), whole, rtol=1e-12, atol=1e-15)

    for parts in ([[i] for i in everything], [everything[:7], everything[7:]]):
        assert_whole(*loss_and_gradient(name, batch, aggregation, parts))
    shuffled = torch.randperm(responses, generator=torch.Generator().manual_seed(1)).tolist()
    assert_whole(*loss_and_gradient(name, batch, aggregation, [shuffled]))

    wide = SimpleNamespace(**vars(batch))
    for key in ("old_BT", "log_prob_BT", "entropy_BT", "mask_BT"):
        tensor = getattr(batch, key)
        setattr(wide, key, torch.cat([tensor, torch.zeros_like(tensor)], dim=1))
    loss, gradient_BT = loss_and_gradient(name, wide, aggregation, [everything])
    assert_whole(loss, gradient_BT[:, :width])
    assert (gradient_BT[:, width:] == 0).all()

    for garbage in GARBAGE:
        wide.log_prob_BT[~wide.mask_BT] = garbage
        wide.old_BT[~wide.mask_BT] = -garbage if garbage == 100.0 else garbage
        wide.entropy_BT[~wide.mask_BT] = garbage
        loss, gradient_BT = loss_and_gradient(name, wide, aggregation, [everything])
        assert_whole(loss, gradient_BT[:, :width])


@pytest.mark.parametrize("name", NAMES)
def test_coefficients_move_with_their_tokens(lab, name):
    batch = lab.make_batch()
    order = torch.randperm(batch.mask_BT.shape[1], generator=torch.Generator().manual_seed(2))
    moved = SimpleNamespace(**vars(batch))
    for key in ("old_BT", "log_prob_BT", "entropy_BT", "mask_BT"):
        setattr(moved, key, getattr(batch, key)[:, order])
    expected = coefficient(name, batch)[:, order]
    torch.testing.assert_close(coefficient(name, moved), expected, rtol=1e-12, atol=0)


# On the policy that sampled, a coefficient is 1 but for the change of the advantage.
ON_POLICY = {
    "entropy_adv": lambda batch: (
        1
        + torch.where(
            batch.advantage_B.unsqueeze(1) == 0,
            0.0,
            torch.minimum(0.4 * batch.entropy_BT, batch.advantage_B.abs().unsqueeze(1) / 2)
            / batch.advantage_B.unsqueeze(1),
        )
    ),
    "adv_reweight": lambda batch: 0.9 + 0.1 * batch.old_BT.exp(),
}


@pytest.mark.parametrize("name", NAMES)
def test_on_policy(lab, name):
    batch = lab.make_batch(spread=0.0)
    expected = ON_POLICY.get(name, lambda batch: torch.ones_like(batch.old_BT))(batch)
    expected = torch.where(batch.mask_BT, expected, 0.0)
    torch.testing.assert_close(coefficient(name, batch), expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", NAMES)
def test_result_is_detached_in_the_dtype_of_the_log_ratio_and_zero_at_masked_tokens(lab, name):
    for dtype in (torch.float32, torch.float64):
        batch = lab.make_batch(dtype=dtype)
        positional, keyword = tensors(batch)
        c_BT = coefficients(name, positional[0].requires_grad_(), *positional[1:], **keyword)
        assert c_BT.dtype == dtype
        assert not c_BT.requires_grad
        assert c_BT.shape == batch.mask_BT.shape
        assert (c_BT[~batch.mask_BT] == 0).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.float32, torch.float64])
def test_mask_may_be_bool_int_or_float(lab, name, dtype):
    batch = lab.make_batch()
    expected = coefficient(name, batch)
    batch.mask_BT = batch.mask_BT.to(dtype)
    assert torch.equal(coefficient(name, batch), expected)


@pytest.mark.parametrize("name", NAMES)
def test_float32_agrees_with_float64(lab, name):
    # Inputs that float32 holds exactly, so that only the arithmetic differs.
    batch = lab.make_batch(spread=1.0)
    positional, keyword = tensors(batch)
    single = [x.float() if x.is_floating_point() else x for x in positional]
    double = [x.double() if x.is_floating_point() else x for x in single]
    entropy_BT = keyword["entropy_BT"].float()
    actual = coefficients(name, *single, entropy_BT=entropy_BT)
    expected = coefficients(name, *double, entropy_BT=entropy_BT.double())
    torch.testing.assert_close(actual.double(), expected, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("name", NAMES)
def test_zero_advantage_is_finite_and_gives_no_gradient(lab, name):
    batch = from_log_ratios(torch.tensor([[-100.0, -1.0, 0.0, 1.0, 100.0]]), [0.0])
    batch.max_response_tokens = 5
    assert coefficient(name, batch).isfinite().all()
    _, gradient_BT = loss_and_gradient(name, batch, "token-mean", [[0]])
    assert (gradient_BT == 0).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("advantage", [1.0, -1.0, 0.0, 1e-30, -1e-30, 1e6, -1e6])
@pytest.mark.parametrize("value", [100.0, -100.0, float("inf"), float("-inf")])
@pytest.mark.parametrize("name", NAMES)
def test_extreme_log_ratios_at_valid_tokens_are_clamped_and_counted(name, value, advantage, dtype):
    log_ratio_BT = torch.tensor([[value, 0.0, 0.0], [0.1, 0.0, value]], dtype=dtype)
    mask_BT = torch.tensor([[True, True, True], [True, True, False]])
    batch = from_log_ratios(log_ratio_BT, [advantage, advantage], mask_BT)
    assert coefficient(name, batch).isfinite().all()
    # One token or one response, never the masked one; none where nothing is exponentiated.
    exponents = [key for key in registry.get(name).inputs if key in EXPONENTS]
    assert clamped_exponents(name, log_ratio_BT, mask_BT) == len(exponents)


@pytest.mark.parametrize("old", [0.0, -1e-7, -50.0, -1e4])
@pytest.mark.parametrize("name", NAMES)
def test_certain_and_impossible_old_tokens_are_finite(name, old):
    batch = from_log_ratios(torch.linspace(-3, 3, 61).expand(2, 61), [1.0, -1.0])
    batch.old_BT[:] = old
    batch.log_prob_BT = batch.old_BT + torch.linspace(-3, 3, 61)
    assert coefficient(name, batch).isfinite().all()


@pytest.mark.parametrize("per_token", [1.0, -1.0, 0.01, -0.01])
@pytest.mark.parametrize("name", NAMES)
def test_weight_over_and_underflow_over_16384_tokens(name, per_token):
    # W = exp(+-16384), beyond float64, or exp(+-164); no token is extreme by itself.
    batch = from_log_ratios(torch.full((2, 16384), per_token), [1.0, -1.0])
    assert coefficient(name, batch).isfinite().all()
    counted = clamped_exponents(name, batch.log_prob_BT - batch.old_BT, batch.mask_BT)
    assert counted == (2 if "log_weight_B1" in needs(name) else 0)


@pytest.mark.parametrize("advantage", [1.0, -1.0])
@pytest.mark.parametrize("name", [name for name in NAMES if EXPONENTS.keys() & needs(name)])
def test_nan_at_a_valid_token_is_not_hidden(name, advantage):
    batch = from_log_ratios(torch.tensor([[float("nan"), 0.0]]), [advantage])
    assert coefficient(name, batch).isnan().any()


# Fine around 0, where GSPO's clip range lies, and wide.
LOG_RATIOS = torch.cat([torch.linspace(-1e-3, 1e-3, 201), torch.linspace(-3, 3, 601)]).double()


def with_share(positive):
    """Every log-ratio once with A = `positive` and once with A = -1."""
    log_ratio_BT = torch.cat([LOG_RATIOS, LOG_RATIOS]).unsqueeze(1)
    advantage_B = torch.full((len(log_ratio_BT),), -1.0)
    advantage_B[: len(LOG_RATIOS)] = positive
    return from_log_ratios(log_ratio_BT, advantage_B)


@pytest.mark.parametrize(("name", "parameter"), WITH_PARAMETERS)
def test_every_parameter_changes_the_coefficient(name, parameter):
    described = registry.get(name).parameters[parameter]
    default = described.default
    others = [default / 2, default * 1.7] if default else [1.5]
    # BAPO's bounds move with the share of positive responses.
    batches = [with_share(positive) for positive in (0.3, 1.0, 1.6, 2.0, 3.0)]
    assert any(
        not torch.equal(coefficient(name, batch, **{parameter: other}), coefficient(name, batch))
        for batch in batches
        for other in others
        if other in described
    )


@pytest.mark.parametrize("name", NAMES)
def test_defaults_written_out_change_nothing(lab, name):
    batch = lab.make_batch()
    written_out = coefficient(name, batch, **parameter_defaults(name))
    assert torch.equal(written_out, coefficient(name, batch))


@pytest.mark.parametrize("name", NAMES)
def test_no_responses_at_all(name):
    batch = from_log_ratios(torch.zeros(0, 3), [])
    assert coefficient(name, batch).shape == (0, 3)
