"""BAPO against a plain search over its bounds and autograd of its clipped surrogate."""

import math

import pytest
import torch

from respo.objectives import batch_sums, coefficients, kernel
from respo.objectives.bapo import _bounds

DEFAULTS = {
    "target": 0.4,
    "high_start": 1.2,
    "high_max": 3.0,
    "high_step": 0.05,
    "low_start": 0.6,
    "low_max": 0.9,
    "low_step": 0.02,
}


def search(batch, **parameters):
    """BAPO, Alg. 1, one pair of bounds after the other over all tokens; the raised bounds."""
    p = DEFAULTS | parameters
    ratio_BT = torch.exp(batch.log_prob_BT - batch.old_BT)
    a_B1 = batch.advantage_B.unsqueeze(1)

    def share(low, high):
        term_BT = torch.minimum(ratio_BT * a_B1, torch.clip(ratio_BT, low, high) * a_B1)
        weighted = (batch.old_BT.exp() * term_BT)[batch.mask_BT]
        total = weighted.abs().sum().item()
        return weighted[weighted > 0].sum().item() / total if total else 1.0

    i = j = 0
    while (
        share(p["low_start"] + j * p["low_step"], p["high_start"] + i * p["high_step"])
        < p["target"]
    ):
        if p["high_start"] + (i + 1) * p["high_step"] <= p["high_max"] + 1e-9:
            i += 1
        elif p["low_start"] + (j + 1) * p["low_step"] <= p["low_max"] + 1e-9:
            j += 1
        else:
            break
    return p["low_start"] + j * p["low_step"], p["high_start"] + i * p["high_step"]


def skewed(lab, shift, seed=0):
    """A batch with as many more or fewer positive responses as the shift of its advantages says."""
    batch = lab.make_batch(responses=48, spread=0.8, seed=seed)
    batch.advantage_B += shift
    return batch


# A shift of the advantages that lets the search end at each of its stages.
@pytest.mark.parametrize(
    ("shift", "stage"), [(0.5, "start"), (0.1, "high"), (0.0, "end"), (-3.0, "end")]
)
def test_gradient_is_the_clipped_surrogates_at_the_bounds_of_the_search(lab, shift, stage):
    batch = skewed(lab, shift)
    low, high = search(batch)
    reached = {
        "start": low == 0.6 and high == 1.2,
        "high": low == 0.6 and 1.2 < high < 3.0,
        "end": low == pytest.approx(0.9) and high == 3.0,
    }
    assert reached[stage], (low, high)
    a_B1 = batch.advantage_B.unsqueeze(1)
    lab.assert_gradient(
        batch,
        "bapo",
        lambda log_prob_BT: lab.clipped_surrogate(
            torch.exp(log_prob_BT - batch.old_BT), a_B1, low, high
        ),
    )


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"target": 0.45},
        {"high_start": 1.0, "high_step": 0.3},
        {"low_start": 0.1, "low_step": 0.1, "high_max": 1.3},
        {"high_max": 1.0},
        {"low_max": 0.0},
    ],
    ids=str,
)
def test_gradient_is_the_surrogates(lab, seed, parameters):
    batch = skewed(lab, 0.1, seed)
    low, high = search(batch, **parameters)
    a_B1 = batch.advantage_B.unsqueeze(1)

    def term(log_prob_BT):
        ratio_BT = torch.exp(log_prob_BT - batch.old_BT)
        return lab.clipped_surrogate(ratio_BT, a_B1, low, high)

    lab.assert_gradient(batch, "bapo", term, **parameters)


@pytest.mark.parametrize("advantage", [2.0, -2.0])
def test_gradient_on_both_sides_of_the_bounds(lab, advantage):
    # Only positive responses: the bounds stay at their starts. Only negative ones: both at the end.
    low, high = (0.6, 1.2) if advantage > 0 else (0.6 + 15 * 0.02, 3.0)
    ratios = [p + d for p in (0.6, 0.9, 1.2, 3.0) for d in (-1e-9, 1e-9)]
    batch = lab.at_ratios(ratios, advantage)
    a_B1 = batch.advantage_B.unsqueeze(1)
    lab.assert_gradient(
        batch,
        "bapo",
        lambda log_prob_BT: lab.clipped_surrogate(
            torch.exp(log_prob_BT - batch.old_BT), a_B1, low, high
        ),
    )


def test_sums_by_hand():
    # One token each: pi_old 0.5, A = 2, r = 1.22 gives 1 * min(1.22, high); pi_old 0.25, A = -4,
    # r = 0.61 gives 1 * max(0.61, 0.6). Advantage 0 and masked tokens add nothing.
    ratio_BT = torch.tensor([[1.22, 7.0], [0.61, 7.0], [9.0, 9.0]], dtype=torch.float64)
    old_BT = torch.tensor([[0.5, 0.5], [0.25, 0.5], [0.5, 0.5]], dtype=torch.float64).log()
    mask_BT = torch.tensor([[1, 0], [1, 0], [1, 1]])
    advantage_B = torch.tensor([2.0, -4.0, 0.0])
    sums = batch_sums("bapo", ratio_BT.log(), advantage_B, mask_BT, old_BT)
    expected = [1.2] + [1.22] * 36 + [0.61]
    assert sums.tolist() == pytest.approx(expected)


def test_sums_of_parts_are_the_sums_of_the_whole(lab):
    batch = skewed(lab, 0.1)
    inputs = (batch.log_prob_BT - batch.old_BT, batch.advantage_B, batch.mask_BT, batch.old_BT)
    whole = batch_sums("bapo", *inputs)
    parts = [batch_sums("bapo", *(x[i : i + 7] for x in inputs)) for i in range(0, 48, 7)]
    torch.testing.assert_close(sum(parts), whole, rtol=1e-12, atol=1e-12)
    # A part on its own would choose other bounds than the mini-batch.
    together = coefficients("bapo", *inputs)
    within = [
        coefficients("bapo", *(x[i : i + 7] for x in inputs), batch_sums=whole)
        for i in range(0, 48, 7)
    ]
    assert torch.equal(torch.cat(within), together)
    alone = [coefficients("bapo", *(x[i : i + 7] for x in inputs)) for i in range(0, 48, 7)]
    assert not torch.equal(torch.cat(alone), together)


def test_bounds_do_not_drift():
    like = torch.zeros(())
    highs, lows = _bounds(1.2, 3.0, 0.05, like), _bounds(0.6, 0.9, 0.02, like)
    assert highs.tolist() == [1.2 + 0.05 * i for i in range(37)]
    assert lows.tolist() == [0.6 + 0.02 * j for j in range(16)]
    assert _bounds(1.2, 1.1, 0.05, like).tolist() == [1.2]
    assert _bounds(1.0, 1.95, 0.5, like).tolist() == [1.0, 1.5]


@pytest.mark.parametrize(("sign", "low", "high"), [(1, 0.0, 1.2), (-1, 0.6, math.inf)])
def test_an_empty_batch_has_the_starting_bounds(sign, low, high):
    log_w = torch.linspace(-2, 2, 101, dtype=torch.float64)
    ratio = log_w.exp()
    kept = (ratio >= low) & (ratio <= high)
    torch.testing.assert_close(kernel("bapo", log_w, sign), torch.where(kept, ratio, 0.0))
