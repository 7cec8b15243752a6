import numpy as np
import pytest

from respo.statistics import accuracy_by_bin, error_by_bin, length_bin, length_bounds


def test_bounds_by_hand() -> None:
    """18 uncapped lengths, 2 in each of 9 bins; the three at the limit are a bin of their own."""
    tokens = [*range(1, 19), 100, 100, 100]
    upper = length_bounds(tokens, limit=100)
    assert upper.tolist() == [2, 4, 6, 8, 10, 12, 14, 16, 18, 100]
    index = length_bin(tokens, upper)
    assert np.bincount(index).tolist() == [2] * 9 + [3]
    assert length_bin([1, 2, 3, 18, 99, 100], upper).tolist() == [0, 0, 1, 8, 8, 9]


def test_the_order_of_responses_is_irrelevant() -> None:
    tokens = np.random.default_rng(0).integers(1, 101, size=500)
    upper = length_bounds(tokens, limit=100)
    np.testing.assert_array_equal(length_bounds(tokens[::-1], limit=100), upper)


def test_frequencies_that_do_not_divide() -> None:
    """5 lengths in 2 bins: at least half of them, 3, do not exceed the first bound."""
    upper = length_bounds([1, 2, 3, 4, 5], limit=9, bins=3)
    assert upper.tolist() == [3, 5, 9]


def test_equal_lengths_are_never_split() -> None:
    """7 is longer than a bin of 3: the first of the bins it would fill holds all five."""
    tokens = [1, 2, 7, 7, 7, 7, 7, 8, 9]
    upper = length_bounds(tokens, limit=50, bins=4)
    # 3 of 9 do not exceed 7, as do 6; 9 do not exceed 9.
    assert upper.tolist() == [7, 7, 9, 50]
    assert length_bin(tokens, upper).tolist() == [0, 0, 0, 0, 0, 0, 0, 2, 2]


@pytest.mark.parametrize("seed", range(5))
def test_bins_against_a_search_over_lengths(seed: int) -> None:
    """Against the definition, length by length; equal frequency up to the share of one length."""
    tokens = np.random.default_rng(seed).integers(1, 41, size=237)
    upper = length_bounds(tokens, limit=40)
    uncapped = tokens[tokens < 40]
    for q, bound in enumerate(upper[:-1], start=1):
        lengths = range(1, 40)
        enough = [t for t in lengths if 9 * (uncapped <= t).sum() >= q * uncapped.size]
        assert bound == enough[0]
    counts = np.bincount(length_bin(tokens, upper), minlength=10)
    assert counts[9] == (tokens == 40).sum()
    most = np.bincount(uncapped).max()
    assert np.abs(counts[:9] - uncapped.size / 9).max() <= most
    index_of = dict(zip(tokens.tolist(), length_bin(tokens, upper).tolist(), strict=True))
    assert [index_of[t] for t in tokens.tolist()] == length_bin(tokens, upper).tolist()


def test_fewer_lengths_than_bins() -> None:
    """Two lengths: two bins hold them, the others stay empty, and the last is that of the limit."""
    upper = length_bounds([3, 3, 5], limit=8)
    assert upper.tolist() == [3, 3, 3, 3, 3, 3, 5, 5, 5, 8]
    assert length_bin([3, 3, 5], upper).tolist() == [0, 0, 6]


def test_only_responses_at_the_limit() -> None:
    upper = length_bounds([8, 8], limit=8)
    assert upper.tolist() == [7] * 9 + [8]
    assert length_bin([8, 7, 0], upper).tolist() == [9, 0, 0]


def test_none_at_the_limit() -> None:
    upper = length_bounds(np.arange(1, 10), limit=100)
    assert upper.tolist() == [*range(1, 10), 100]
    # A length that was not pooled, beyond all bounds: not at the limit, so not of its bin.
    assert length_bin([50], upper).tolist() == [8]


def test_two_bins_are_capped_and_uncapped() -> None:
    upper = length_bounds([1, 5, 9], limit=9, bins=2)
    assert upper.tolist() == [5, 9]
    assert length_bin([1, 5, 6, 9], upper).tolist() == [0, 0, 0, 1]


def test_accuracy_by_bin() -> None:
    """Group 0: bin 0 with 1 of 2, bin 2 with 0 of 1; group 1: bin 0 with 1 of 1; group 2: none."""
    result = accuracy_by_bin(
        [0, 0, 2, 0], [True, False, False, True], [0, 0, 0, 1], bins=3, groups=3
    )
    assert result.responses_GQ.tolist() == [[2, 0, 1], [1, 0, 0], [0, 0, 0]]
    nan = np.nan
    np.testing.assert_array_equal(
        result.accuracy_GQ, [[0.5, nan, 0.0], [1.0, nan, nan], [nan, nan, nan]]
    )


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="no response"):
        length_bounds([], limit=8)
    with pytest.raises(ValueError, match="at least 2 bins"):
        length_bounds([1], limit=8, bins=1)
    with pytest.raises(ValueError, match="between 0 and the limit of 8 tokens"):
        length_bounds([9], limit=8)
    with pytest.raises(ValueError, match="between 0 and the limit of 8 tokens"):
        length_bin([-1], [7, 8])
    with pytest.raises(ValueError, match="a bin, a verdict and a group"):
        accuracy_by_bin([0], [True], [0, 1], bins=1, groups=2)
    with pytest.raises(ValueError, match="from 0 to 1"):
        accuracy_by_bin([2], [True], [0], bins=2, groups=3)
    with pytest.raises(ValueError, match="from 0 to 0"):
        accuracy_by_bin([0], [True], [-1], bins=2, groups=1)


def test_error_by_bin_keeps_problems_together() -> None:
    """Problem 7 is right 2 times of 2, problem 9 never of 1: a = 2/3, residuals 2/3 and -2/3.

    The variance is 2 / 1 x 8/9 by 3 squared, the error 4/9. In bin 1 there is one problem alone.
    """
    error_GQ = error_by_bin(
        [0, 0, 0, 1], [True, True, False, True], [0] * 4, [7, 7, 9, 9], bins=3, groups=1
    )
    np.testing.assert_allclose(error_GQ, [[4 / 9, np.nan, np.nan]])


def test_error_of_problems_with_one_response_each() -> None:
    """Then it is the usual one of a share, sqrt(a (1 - a) / (n - 1)): a = 1/4, n = 4."""
    correct = [True, False, False, False]
    error_GQ = error_by_bin([0] * 4, correct, [1] * 4, range(4), bins=1, groups=2)
    np.testing.assert_allclose(error_GQ, [[np.nan], [np.sqrt(3 / 16 / 3)]])
    with pytest.raises(ValueError, match="needs a cluster"):
        error_by_bin([0] * 4, correct, [0] * 4, [0], bins=1, groups=1)
