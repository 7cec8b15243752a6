from itertools import combinations

import numpy as np
import pytest

from respo.statistics import pass_at_1, pass_at_k


def test_pass_at_1_weights_problems_equally() -> None:
    # 1/4 and 4/8: mean 3/8, whereas 5 of 12 samples are correct.
    assert pass_at_1([1, 4], [4, 8]) == 0.375
    assert pass_at_1([0, 0], [4, 4]) == 0.0
    assert pass_at_1([3], 3) == 1.0


@pytest.mark.parametrize(
    ("n", "c", "k", "value"),
    # From public bug reports (n 4, c 1), and the formula by hand.
    [
        (4, 1, 4, 1.0),
        (4, 1, 2, 0.5),
        (4, 1, 1, 0.25),
        (4, 0, 4, 0.0),
        (4, 4, 1, 1.0),
        (5, 2, 3, 0.9),  # 1 - C(3,3)/C(5,3) = 1 - 1/10
        (5, 3, 3, 1.0),  # fewer than 3 wrong ones
        (32, 1, 16, 0.5),
    ],
)
def test_pass_at_k_by_hand(n: int, c: int, k: int, value: float) -> None:
    assert pass_at_k(n, c, k) == pytest.approx(value, abs=1e-15)


def test_pass_at_k_is_the_share_of_subsets_with_a_correct_sample() -> None:
    n = 7
    for c in range(n + 1):
        for k in range(1, n + 1):
            subsets = list(combinations(range(n), k))
            share = sum(any(sample < c for sample in subset) for subset in subsets) / len(subsets)
            assert pass_at_k(n, c, k) == pytest.approx(share, abs=1e-12)


def test_pass_at_k_of_many() -> None:
    value = pass_at_k([4, 8], [1, 0], 2)
    assert value.tolist() == pytest.approx([0.5, 0.0])
    # Large counts: 1 - C(900, 500) / C(1000, 500), about 1 - 1e-32.
    assert pass_at_k(1000, 100, 500) == 1.0


@pytest.mark.parametrize(("n", "c", "k"), [(4, 1, 5), ([4, 8], [1, 1], 8), (4, 1, 0), (4, 1, -1)])
def test_k_out_of_range(n: int, c: int, k: int) -> None:
    with pytest.raises(ValueError, match="samples per problem"):
        pass_at_k(n, c, k)


@pytest.mark.parametrize(("correct", "samples"), [([5], [4]), ([-1], [4]), ([0], [0])])
def test_impossible_counts(correct: list, samples: list) -> None:
    with pytest.raises(ValueError, match="each problem needs"):
        pass_at_1(correct, samples)
    with pytest.raises(ValueError, match="each problem needs"):
        pass_at_k(samples, correct, 1)


def test_no_problem() -> None:
    with pytest.raises(ValueError, match="one count per problem"):
        pass_at_1([], [])
    with pytest.raises(ValueError, match="one count per problem"):
        pass_at_1(np.ones((2, 2)), 4)
