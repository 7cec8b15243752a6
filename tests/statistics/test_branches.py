import numpy as np
import pytest

from respo.statistics import branch_shares, mean_by_batch, sum_by_batch


def test_shares_by_hand() -> None:
    """Of 4 responses one is in bin 0, with half of the mass 8 and 30 of 60 tokens."""
    branch = branch_shares([1, 3], [4.0, 4.0], [30, 30])
    assert branch.share_XN.tolist() == [0.25, 0.75]
    assert branch.mass_share_XN.tolist() == [0.5, 0.5]
    assert branch.amplification_XN == pytest.approx([2.0, 2 / 3])
    assert branch.mean_tokens_XN.tolist() == [30.0, 10.0]
    assert branch.branch_mean_tokens_X == 15.0
    assert branch.length_ratio_XN == pytest.approx([2.0, 2 / 3])


@pytest.mark.parametrize(
    ("responses", "mass", "amplification"),
    # ReSPO, App. E.3, log W < -1: 22.8 % of ReSPO's responses have 38.5 % of the mass, 1.69 times.
    [(228, 385, 1.69), (167, 155, 0.93)],  # the second VESPO; its quotient is not printed
)
def test_published_amplification(responses: int, mass: int, amplification: float) -> None:
    branch = branch_shares([responses, 1000 - responses], [mass, 1000 - mass], [1, 1])
    assert branch.amplification_XN[0] == pytest.approx(amplification, abs=0.005)


def test_empty_bins() -> None:
    """Nothing is a share of 0, but has neither an amplification nor a length."""
    branch = branch_shares([2, 0], [1.0, 0.0], [10, 0])
    assert branch.share_XN.tolist() == [1.0, 0.0]
    assert branch.mass_share_XN.tolist() == [1.0, 0.0]
    for values in (branch.amplification_XN, branch.mean_tokens_XN, branch.length_ratio_XN):
        np.testing.assert_array_equal(np.isnan(values), [False, True])


def test_empty_branch() -> None:
    branch = branch_shares([0, 0], [0.0, 0.0], [0, 0])
    for values in branch[1:]:
        assert np.isnan(values).all()


def test_everything_clipped() -> None:
    """Responses without any coefficient: the shares of no mass are not known."""
    branch = branch_shares([1, 1], [0.0, 0.0], [5, 5])
    assert branch.share_XN.tolist() == [0.5, 0.5]
    assert np.isnan(branch.mass_share_XN).all()
    assert np.isnan(branch.amplification_XN).all()
    assert branch.length_ratio_XN.tolist() == [1.0, 1.0]


def test_sums_before_quotients() -> None:
    """Two updates of batch 1 and one of batch 3, rows in any order.

    Batch 1: 1 + 3 responses in bin 0 and 4 in bin 1, so a share of 1/2; the mean of the updates'
    shares, 1/1 and 3/7, would be 5/7.
    """
    batch, index = [1, 3, 1, 1, 1, 3], [0, 1, 1, 0, 1, 0]
    batches, responses = sum_by_batch(batch, index, np.array([1, 5, 0, 3, 4, 0]), bins=2)
    assert batches.tolist() == [1, 3]
    assert responses.tolist() == [[4, 4], [0, 5]]
    assert responses.dtype == np.int64  # counts stay exact
    _, tokens = sum_by_batch(batch, index, [10, 50, 0, 30, 120, 0], bins=2)
    branch = branch_shares(responses, responses.astype(float), tokens)
    assert branch.share_XN.tolist() == [[0.5, 0.5], [0.0, 1.0]]
    assert branch.mean_tokens_XN[0].tolist() == [10.0, 30.0]
    assert branch.branch_mean_tokens_X.tolist() == [20.0, 10.0]
    assert branch.length_ratio_XN[0].tolist() == [0.5, 1.5]
    # All batches together: 4 of 13.
    pooled = branch_shares(responses.sum(axis=0), [1.0, 1.0], tokens.sum(axis=0))
    assert pooled.share_XN[0] == pytest.approx(4 / 13)
    # A wider bin.
    wide = np.add.reduceat(responses, [0], axis=-1)
    assert branch_shares(wide, wide, wide).share_XN.tolist() == [[1.0], [1.0]]


def test_mean_by_batch() -> None:
    batches, means = mean_by_batch([2, 1, 2, 1], [-0.5, 0.0, -0.27, -0.2])
    assert batches.tolist() == [1, 2]
    assert means == pytest.approx([-0.1, -0.385])
    # The geometric-mean weight that ReSPO, App. E.3, gives for a mean log W of -0.385.
    assert np.exp(means[1]) == pytest.approx(0.68, abs=0.005)
    empty = mean_by_batch([], [])
    assert [values.size for values in empty] == [0, 0]


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="the same bins"):
        branch_shares([1, 2], [1.0], [1, 2])
    with pytest.raises(ValueError, match="the same bins"):
        branch_shares(1, 1.0, 1)
    with pytest.raises(ValueError, match="a rollout batch, a bin and a value"):
        sum_by_batch([1], [0, 1], [1, 2], bins=2)
    with pytest.raises(ValueError, match="from 0 to 1"):
        sum_by_batch([1], [2], [1], bins=2)
    with pytest.raises(ValueError, match="a rollout batch"):
        mean_by_batch([1, 2], [0.0])
