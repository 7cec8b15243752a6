"""Aggregation and the loss: by hand, and the named mistakes."""

import math

import pytest
import torch

from respo.objectives import (
    AGGREGATIONS,
    entropy_bonus,
    kl_loss,
    policy_loss,
    token_weights,
)

TOTALS = {"batch_tokens": 4, "batch_responses": 2, "max_response_tokens": 10}


# Responses of 3 and 1 tokens; by hand from the definitions.
@pytest.mark.parametrize(
    ("aggregation", "long", "short"),
    [
        ("token-mean", 1 / 4, 1 / 4),
        ("seq-mean-token-mean", 1 / 6, 1 / 2),
        ("seq-mean-token-sum", 1 / 2, 1 / 2),
        ("seq-mean-token-sum-norm", 1 / 20, 1 / 20),
    ],
)
def test_weights_by_hand(aggregation, long, short):
    mask_BT = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0]])
    weight_B = token_weights(aggregation, mask_BT, **TOTALS)
    torch.testing.assert_close(weight_B, torch.tensor([long, short], dtype=torch.float64))


def test_the_aggregation_changes_the_loss():
    mask_BT = torch.tensor([[1, 1, 1], [1, 0, 0]])
    log_prob_BT = torch.tensor([[-1.0, -2.0, -3.0], [-0.5, 0.0, 0.0]])
    losses = set()
    for aggregation in AGGREGATIONS:
        weight_B = token_weights(aggregation, mask_BT, **TOTALS)
        loss = policy_loss(log_prob_BT, torch.ones(2, 3), torch.ones(2), mask_BT, weight_B)
        losses.add(round(loss.item(), 6))
    assert len(losses) == len(AGGREGATIONS)


@pytest.mark.parametrize("rows", [[[0, 1]], [[0], [1]], [[1], [0]]])
def test_ten_and_a_thousand_tokens(rows):
    # Token losses 1 over 10 tokens and 0 over 1000: 10/1010, in one micro-batch or two. A mean
    # of micro-batch means would give 1/2.
    mask_BT = torch.arange(1000) < torch.tensor([[10], [1000]])
    log_prob_BT = torch.tensor([[-1.0], [0.0]], dtype=torch.float64).expand(2, 1000)
    total = 0.0
    for part in rows:
        weight_B = token_weights(
            "token-mean",
            mask_BT[part],
            batch_tokens=1010,
            batch_responses=2,
            max_response_tokens=1000,
        )
        ones = torch.ones(len(part), 1000)
        total += policy_loss(
            log_prob_BT[part], ones, torch.ones(len(part)), mask_BT[part], weight_B
        ).item()
    assert total == pytest.approx(10 / 1010, rel=1e-12)


def test_loss_and_gradient_by_hand():
    log_prob_BT = torch.tensor([[-1.0, -2.0], [-3.0, -4.0]], requires_grad=True)
    coefficient_BT = torch.tensor([[0.5, 2.0], [1.0, 7.0]], requires_grad=True)
    weight_B = torch.full((2,), 0.25, requires_grad=True)
    mask_BT = torch.tensor([[1, 1], [1, 0]])
    loss = policy_loss(log_prob_BT, coefficient_BT, torch.tensor([2.0, -1.0]), mask_BT, weight_B)
    # -(0.5*2*-1 + 2*2*-2 + 1*-1*-3) / 4
    assert loss.item() == pytest.approx(6 / 4)
    loss.backward()
    assert log_prob_BT.grad.tolist() == [[-0.25, -1.0], [0.25, 0.0]]
    assert coefficient_BT.grad is None
    assert weight_B.grad is None


@pytest.mark.parametrize("garbage", [float("inf"), float("-inf"), float("nan"), 100.0, -100.0])
def test_masked_garbage_in_any_tensor_does_not_reach_the_gradient(garbage):
    mask_BT = torch.tensor([[1, 0]])
    log_prob_BT = torch.tensor([[-1.0, garbage]], requires_grad=True)
    other_BT = torch.tensor([[1.0, garbage]])
    loss = policy_loss(log_prob_BT, other_BT, torch.tensor([2.0]), mask_BT, torch.ones(1))
    loss.backward()
    assert loss.item() == 2.0
    assert log_prob_BT.grad.tolist() == [[-2.0, 0.0]]


def test_a_batch_without_any_advantage_gives_a_zero_gradient():
    log_prob_BT = torch.full((4, 3), -1.0, requires_grad=True)
    mask_BT = torch.ones(4, 3)
    weight_B = torch.ones(4) / 12
    loss = policy_loss(log_prob_BT, torch.full((4, 3), 4.9e8), torch.zeros(4), mask_BT, weight_B)
    loss.backward()
    assert loss.item() == 0
    assert (log_prob_BT.grad == 0).all()


def test_the_loss_keeps_the_dtype_of_the_log_probs():
    weight_B = token_weights("token-mean", torch.ones(2, 2), **TOTALS)
    ones = torch.ones(2, 2)
    assert policy_loss(-ones, ones, torch.ones(2), ones, weight_B).dtype == torch.float32


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_a_response_without_tokens_adds_nothing(aggregation):
    mask_BT = torch.tensor([[0, 0], [1, 1]])
    log_prob_BT = torch.full((2, 2), -1.0, requires_grad=True)
    weight_B = token_weights(aggregation, mask_BT, **TOTALS)
    policy_loss(log_prob_BT, torch.ones(2, 2), torch.ones(2), mask_BT, weight_B).backward()
    assert log_prob_BT.grad[0].tolist() == [0, 0]
    assert log_prob_BT.grad.isfinite().all()


@pytest.mark.parametrize("total", list(TOTALS))
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_totals_must_be_positive(total, value):
    with pytest.raises(ValueError, match=f"{total} = {value} must be positive"):
        token_weights("token-mean", torch.ones(1, 1), **(TOTALS | {total: value}))


def test_unknown_aggregation():
    with pytest.raises(ValueError, match="unknown aggregation: 'mean'; known: token-mean, seq-"):
        token_weights("mean", torch.ones(1, 1), **TOTALS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log_prob_BT": torch.zeros(2, 3, dtype=torch.bfloat16)}, "float32 or float64"),
        ({"coefficient_BT": torch.ones(2, 1)}, r"coefficient_BT has shape \(2, 1\)"),
        ({"token_weight_B": torch.ones(3)}, r"token_weight_B has shape \(3,\)"),
        ({"advantage_B": torch.ones(2, 3)}, r"advantage_B has shape \(2, 3\)"),
        ({"mask_BT": torch.ones(3, 2)}, "mask_BT has shape"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(change, message):
    tensors = {
        "log_prob_BT": torch.zeros(2, 3),
        "coefficient_BT": torch.ones(2, 3),
        "advantage_B": torch.ones(2),
        "mask_BT": torch.ones(2, 3),
        "token_weight_B": torch.ones(2),
    }
    with pytest.raises(ValueError, match=message):
        policy_loss(**(tensors | change))


def test_kl_by_hand():
    # k3 = exp(x) - x - 1 with x = log pi_ref - log pi: 0 at x = 0, 1 - log 2 at log 2.
    log_prob_BT = torch.tensor([[-1.0, -2.0, -1.0]], dtype=torch.float64, requires_grad=True)
    reference_BT = torch.tensor([[-1.0, -2.0 + math.log(2), math.nan]], dtype=torch.float64)
    mask_BT = torch.tensor([[1, 1, 0]])
    loss = kl_loss(log_prob_BT, reference_BT, mask_BT, torch.tensor([0.5]))
    assert loss.item() == pytest.approx((1 - math.log(2)) / 2)
    loss.backward()
    # Its derivative is 1 - exp(x).
    assert log_prob_BT.grad[0].tolist() == pytest.approx([0.0, -0.5, 0.0])


@pytest.mark.parametrize(("x", "value"), [(3.0, 10.0), (-30.0, 10.0), (100.0, 10.0)])
def test_kl_is_bounded(x, value):
    # exp(3) - 4 = 16.1, exp(-20) + 19: both beyond 10.
    kl = kl_loss(torch.tensor([[-x]]), torch.zeros(1, 1), torch.ones(1, 1), torch.ones(1))
    assert kl.item() == value


def test_entropy_by_hand():
    entropy_BT = torch.tensor([[1.0, 2.0], [4.0, math.inf]], requires_grad=True)
    bonus = entropy_bonus(entropy_BT, torch.tensor([[1, 1], [1, 0]]), torch.tensor([0.5, 0.25]))
    assert bonus.item() == 2.5
    bonus.backward()
    assert entropy_BT.grad.tolist() == [[0.5, 0.5], [0.25, 0.0]]


def test_tensors_that_do_not_fit_the_kl_and_the_entropy_are_refused():
    log_prob_BT, mask_BT = torch.zeros(2, 3), torch.ones(2, 3)
    with pytest.raises(ValueError, match=r"reference_log_prob_BT has shape \(1, 3\)"):
        kl_loss(log_prob_BT, log_prob_BT[:1], mask_BT, torch.ones(2))
    with pytest.raises(ValueError, match=r"token_weight_B has shape \(1,\), expected \(2,\)"):
        kl_loss(log_prob_BT, log_prob_BT, mask_BT, torch.ones(1))
    with pytest.raises(ValueError, match=r"token_weight_B has shape \(2, 3\), expected \(2,\)"):
        entropy_bonus(log_prob_BT, mask_BT, mask_BT)
