"""What holds for every objective: masked garbage, splits, padding, precision, bad inputs."""

import pytest
import torch

from respo.objectives import (
    AGGREGATIONS,
    clamped_exponents,
    coefficients,
    kernel,
    objective_names,
    parameter_defaults,
    policy_loss,
    registry,
    token_weights,
)
from respo.objectives.ratios import EXPONENTS

NAMES = objective_names()
GARBAGE = [float("inf"), float("-inf"), float("nan"), 100.0, -100.0]


def loss_and_gradient(name, batch, aggregation, parts):
    """Sum of the losses of micro-batches, and its gradient; `parts` are lists of row numbers."""
    leaf_BT = batch.log_prob_BT.clone().requires_grad_()
    total = torch.zeros((), dtype=leaf_BT.dtype)
    for rows in parts:
        log_prob_BT, mask_BT = leaf_BT[rows], batch.mask_BT[rows]
        log_ratio_BT = log_prob_BT - batch.old_BT[rows]
        c_BT = coefficients(
            name, log_ratio_BT, batch.advantage_B[rows], mask_BT, batch.old_BT[rows]
        )
        weight_B = token_weights(
            aggregation,
            mask_BT,
            batch_tokens=int(batch.mask_BT.sum()),
            batch_responses=len(batch.mask_BT),
            max_response_tokens=batch.max_response_tokens,
        )
        loss = policy_loss(log_prob_BT, c_BT, batch.advantage_B[rows], mask_BT, weight_B)
        loss.backward()
        total = total + loss.detach()
    return total, leaf_BT.grad


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("name", NAMES)
def test_loss_does_not_depend_on_split_order_padding_or_masked_values(lab, name, aggregation):
    batch = lab.make_batch()
    batch.mask_BT[5] = False  # a response without tokens
    responses, width = batch.mask_BT.shape
    whole = loss_and_gradient(name, batch, aggregation, [list(range(responses))])
    assert whole[1].abs().max() > 0

    for parts in ([[i] for i in range(responses)], [list(range(7)), list(range(7, responses))]):
        split = loss_and_gradient(name, batch, aggregation, parts)
        torch.testing.assert_close(split, whole, rtol=1e-12, atol=1e-15)
    shuffled = torch.randperm(responses, generator=torch.Generator().manual_seed(1)).tolist()
    permuted = loss_and_gradient(name, batch, aggregation, [shuffled])
    torch.testing.assert_close(permuted, whole, rtol=1e-12, atol=1e-15)

    def pad(tensor):
        return torch.cat([tensor, torch.zeros_like(tensor)], dim=1)

    wide = lab.make_batch()
    wide.old_BT, wide.log_prob_BT = pad(batch.old_BT), pad(batch.log_prob_BT)
    wide.mask_BT = pad(batch.mask_BT)
    loss, gradient = loss_and_gradient(name, wide, aggregation, [list(range(responses))])
    torch.testing.assert_close((loss, gradient[:, :width]), whole, rtol=1e-12, atol=1e-15)
    assert (gradient[:, width:] == 0).all()

    for garbage in GARBAGE:
        wide.log_prob_BT[~wide.mask_BT] = garbage
        wide.old_BT[~wide.mask_BT] = -garbage if garbage == 100.0 else garbage
        loss, gradient = loss_and_gradient(name, wide, aggregation, [list(range(responses))])
        torch.testing.assert_close((loss, gradient[:, :width]), whole, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_on_policy_every_coefficient_is_one(lab, name):
    batch = lab.make_batch(spread=0.0)
    log_ratio_BT = batch.log_prob_BT - batch.old_BT
    c = coefficients(name, log_ratio_BT, batch.advantage_B, batch.mask_BT, batch.old_BT)
    torch.testing.assert_close(c, batch.mask_BT.double(), rtol=1e-12, atol=0)


@pytest.mark.parametrize("name", NAMES)
def test_result_is_detached_in_the_dtype_of_the_log_ratio_and_zero_at_masked_tokens(lab, name):
    for dtype in (torch.float32, torch.float64):
        batch = lab.make_batch(dtype=dtype)
        log_ratio_BT = (batch.log_prob_BT - batch.old_BT).requires_grad_()
        c = coefficients(name, log_ratio_BT, batch.advantage_B, batch.mask_BT, batch.old_BT)
        assert c.dtype == dtype
        assert not c.requires_grad
        assert c.shape == log_ratio_BT.shape
        assert (c[~batch.mask_BT] == 0).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.float32, torch.float64])
def test_mask_may_be_bool_int_or_float(lab, name, dtype):
    batch = lab.make_batch()
    log_ratio_BT = batch.log_prob_BT - batch.old_BT
    expected = coefficients(name, log_ratio_BT, batch.advantage_B, batch.mask_BT, batch.old_BT)
    mask_BT = batch.mask_BT.to(dtype)
    actual = coefficients(name, log_ratio_BT, batch.advantage_B, mask_BT, batch.old_BT)
    assert torch.equal(actual, expected)


@pytest.mark.parametrize("name", NAMES)
def test_float32_agrees_with_float64(lab, name):
    # Log-ratios that float32 holds exactly, so that only the arithmetic differs.
    batch = lab.make_batch()
    log_ratio_BT = (batch.log_prob_BT - batch.old_BT).float()
    single = coefficients(name, log_ratio_BT, batch.advantage_B, batch.mask_BT, batch.old_BT)
    double = coefficients(
        name, log_ratio_BT.double(), batch.advantage_B, batch.mask_BT, batch.old_BT
    )
    torch.testing.assert_close(single.double(), double, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("advantage", [1.0, -1.0, 0.0])
@pytest.mark.parametrize("value", [100.0, -100.0, float("inf"), float("-inf")])
@pytest.mark.parametrize("name", NAMES)
def test_extreme_log_ratios_at_valid_tokens_are_clamped_and_counted(name, value, advantage, dtype):
    log_ratio_BT = torch.tensor([[value, 0.0, 0.0], [0.1, 0.0, value]], dtype=dtype)
    mask_BT = torch.tensor([[1, 1, 1], [1, 1, 0]])
    advantage_B = torch.tensor([advantage, advantage])
    old_BT = torch.full_like(log_ratio_BT, -1.0)
    c = coefficients(name, log_ratio_BT, advantage_B, mask_BT, old_BT)
    assert c.isfinite().all()
    # One token or one response, never the masked one; none where nothing is exponentiated.
    exponents = [key for key in registry.get(name).inputs if key in EXPONENTS]
    assert clamped_exponents(name, log_ratio_BT, mask_BT) == len(exponents)


@pytest.mark.parametrize("per_token", [1.0, -1.0])
@pytest.mark.parametrize("name", NAMES)
def test_weight_over_and_underflow_over_16384_tokens(name, per_token):
    # W = exp(+-16384), beyond float64; no token is extreme by itself.
    log_ratio_BT = torch.full((2, 16384), per_token)
    mask_BT, old_BT = torch.ones(2, 16384), torch.full((2, 16384), -1.0)
    c = coefficients(name, log_ratio_BT, torch.tensor([1.0, -1.0]), mask_BT, old_BT)
    assert c.isfinite().all()
    counted = clamped_exponents(name, log_ratio_BT, mask_BT)
    assert counted == (2 if "log_weight_B1" in registry.get(name).inputs else 0)


@pytest.mark.parametrize(
    "name", [name for name in NAMES if EXPONENTS.keys() & registry.get(name).inputs]
)
def test_nan_at_a_valid_token_is_not_hidden(name):
    inputs = (torch.tensor([[float("nan"), 0.0]]), torch.ones(1), torch.ones(1, 2))
    assert coefficients(name, *inputs, torch.zeros(1, 2)).isnan().any()


# Fine around 0, where GSPO's clip range lies, and wide.
LOG_RATIOS = torch.cat([torch.linspace(-1e-3, 1e-3, 201), torch.linspace(-3, 3, 601)]).double()


@pytest.mark.parametrize(
    ("name", "parameter"), [(name, key) for name in NAMES for key in parameter_defaults(name)]
)
def test_every_parameter_changes_the_coefficient(name, parameter):
    default = parameter_defaults(name)[parameter]
    other = default / 2 if default else 1.5
    log_ratio_BT = torch.cat([LOG_RATIOS, LOG_RATIOS]).unsqueeze(1)
    advantage_B = torch.ones(len(log_ratio_BT))
    advantage_B[len(LOG_RATIOS) :] = -1
    old_BT = torch.full_like(log_ratio_BT, -1.0)
    inputs = (log_ratio_BT, advantage_B, torch.ones_like(log_ratio_BT), old_BT)
    assert not torch.equal(
        coefficients(name, *inputs, **{parameter: other}), coefficients(name, *inputs)
    )


@pytest.mark.parametrize("name", NAMES)
def test_defaults_written_out_change_nothing(lab, name):
    batch = lab.make_batch()
    arguments = (batch.log_prob_BT - batch.old_BT, batch.advantage_B, batch.mask_BT, batch.old_BT)
    written_out = coefficients(name, *arguments, **parameter_defaults(name))
    assert torch.equal(written_out, coefficients(name, *arguments))


def test_an_objective_may_ask_for_old_log_probs(monkeypatch):
    def weighted(log_ratio_BT, old_log_prob_BT):
        return old_log_prob_BT.sum(dim=1, keepdim=True)

    monkeypatch.setitem(registry._OBJECTIVES, "weighted", registry._describe("weighted", weighted))
    log_ratio, advantage, mask = torch.zeros(1, 2), torch.ones(1), torch.tensor([[1, 0]])
    with pytest.raises(ValueError, match="weighted needs old_log_prob_BT"):
        coefficients("weighted", log_ratio, advantage, mask)
    old = torch.tensor([[-0.5, float("nan")]])
    c = coefficients("weighted", log_ratio, advantage, mask, old)
    torch.testing.assert_close(c, torch.tensor([[-0.5, 0.0]]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log_ratio_BT": torch.zeros(2, 3, dtype=torch.bfloat16)}, "float32 or float64"),
        ({"log_ratio_BT": torch.zeros(2, 3, dtype=torch.int64)}, "float32 or float64"),
        ({"mask_BT": torch.ones(2, 4)}, r"mask_BT has shape \(2, 4\)"),
        ({"mask_BT": torch.full((2, 3), 0.5)}, "only 0 and 1"),
        ({"mask_BT": torch.full((2, 3), float("nan"))}, "only 0 and 1"),
        ({"advantage_B": torch.ones(3)}, r"advantage_B has shape \(3,\), expected \(2,\)"),
        ({"advantage_B": torch.ones(2, 3)}, "advantage_B has shape"),
        ({"log_ratio_BT": torch.zeros(2), "mask_BT": torch.ones(2)}, "mask_BT has shape"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(change, message):
    tensors = {
        "log_ratio_BT": torch.zeros(2, 3),
        "advantage_B": torch.ones(2),
        "mask_BT": torch.ones(2, 3),
    }
    with pytest.raises(ValueError, match=message):
        coefficients("grpo", **(tensors | change))


@pytest.mark.parametrize("name", NAMES)
def test_no_responses_at_all(name):
    empty_BT = torch.zeros(0, 3)
    assert coefficients(name, empty_BT, torch.zeros(0), empty_BT, empty_BT).shape == (0, 3)


def test_kernel_refuses_other_signs():
    with pytest.raises(ValueError, match=r"sign must be \+1 or -1"):
        kernel("grpo", torch.zeros(3), 0)
