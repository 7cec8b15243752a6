import numpy as np
import pytest
import scipy.stats

from respo.statistics import (
    cluster_bootstrap,
    cluster_bootstraps,
    paired_contrast,
)
from respo.statistics.bootstrap import _draws

# The standard error of 10,000 replicates has itself a relative error of 1/sqrt(20,000) = 0.7 %.
TOLERANCE = 0.03


def bernoulli(problems: int, share: float) -> np.ndarray:
    return (np.arange(problems) < share * problems).astype(float)


@pytest.mark.parametrize(("problems", "share"), [(30, 0.5), (40, 0.2), (674, 0.35)])
def test_closed_form_for_a_mean(problems: int, share: float) -> None:
    """The bootstrap's standard error of a mean of m values is sd / sqrt(m), with ddof 0."""
    means = bernoulli(problems, share)
    result = cluster_bootstrap([means])
    expected = np.sqrt(means.var() / problems)
    assert result.standard_error_J[0] == pytest.approx(expected, rel=TOLERANCE)
    assert result.macro_standard_error == result.standard_error_J[0]
    assert result.mean_J[0] == result.macro == means.mean()
    assert result.replicates_RJ.shape == (10_000, 1)


def test_thirty_problems_of_32_samples() -> None:
    """Problems are resampled, with multiplicity, and not samples.

    15 problems solved in 5 of 32 samples, 15 in 27. The problem means lie 11/32 from their mean
    1/2, so the error is (11/32) / sqrt(30) = 0.0628. Resampling 960 samples would give
    sqrt(1/4 / 960) = 0.0161; dropping repeated problems of a draw, about 0.048.
    """
    means = np.repeat([5 / 32, 27 / 32], 15)
    result = cluster_bootstrap([means])
    assert result.standard_error_J[0] == pytest.approx(0.06276, rel=TOLERANCE)


def test_agrees_with_scipy() -> None:
    means = np.random.default_rng(7).beta(0.5, 0.7, size=60)
    scipy_result = scipy.stats.bootstrap(
        (means,), np.mean, n_resamples=10_000, method="percentile", rng=np.random.default_rng(1)
    )
    result = cluster_bootstrap([means])
    assert result.standard_error_J[0] == pytest.approx(scipy_result.standard_error, rel=TOLERANCE)
    # The difference to zeros has the same percentile interval as the mean itself.
    contrast = paired_contrast(result, cluster_bootstrap([np.zeros(60)]))
    interval = scipy_result.confidence_interval
    assert contrast.macro_low == pytest.approx(interval.low, abs=0.004)
    assert contrast.macro_high == pytest.approx(interval.high, abs=0.004)


def test_macro_average_of_independent_benchmarks() -> None:
    """Errors add in squares: sqrt(a^2 + b^2 + c^2) / 3, whatever the sizes."""
    benchmarks = [bernoulli(30, 0.5), bernoulli(30, 0.5), bernoulli(500, 0.3)]
    result = cluster_bootstrap(benchmarks)
    assert result.macro == pytest.approx((0.5 + 0.5 + 0.3) / 3)
    variances = [b.var() / b.size for b in benchmarks]
    assert result.macro_standard_error == pytest.approx(np.sqrt(sum(variances)) / 3, rel=TOLERANCE)
    np.testing.assert_allclose(result.macro_replicates_R, result.replicates_RJ.mean(axis=1))
    # Equal benchmarks at different positions are drawn independently.
    assert abs(np.corrcoef(result.replicates_RJ[:, :2].T)[0, 1]) < 0.04


def test_draws_depend_on_seed_position_and_size_only() -> None:
    a, b = np.arange(30) / 30, np.arange(40) / 40
    first = cluster_bootstrap([a, b], replicates=700)
    # Another method on the same benchmarks, here twice as good: the same draws.
    second = cluster_bootstrap([2 * a, 2 * b], replicates=700)
    np.testing.assert_allclose(second.replicates_RJ, 2 * first.replicates_RJ)
    # A benchmark more or another size elsewhere changes nothing for the first one.
    third = cluster_bootstrap([a, a, b], replicates=700)
    np.testing.assert_allclose(third.replicates_RJ[:, 0], first.replicates_RJ[:, 0], rtol=1e-12)
    # More replicates continue the same sequence.
    more = cluster_bootstrap([a, b], replicates=1300)
    np.testing.assert_allclose(more.replicates_RJ[:700], first.replicates_RJ, rtol=1e-12)
    other = cluster_bootstrap([a, b], replicates=700, seed=1)
    assert not np.array_equal(other.replicates_RJ, first.replicates_RJ)


def test_memory_is_bounded() -> None:
    """Chunks of at most 2**15 indices, which together are the draws of a single call."""
    chunks = list(_draws(seed=0, position=0, problems=674, replicates=1200))
    assert {chunk.shape for chunk in chunks[:-1]} == {(48, 674)}
    drawn = np.concatenate(chunks)
    at_once = np.random.default_rng([0, 0, 674]).integers(674, size=(1200, 674))
    np.testing.assert_array_equal(drawn, at_once)
    # One replicate at a time where a benchmark is larger than a chunk.
    chunks = list(_draws(seed=0, position=0, problems=70_000, replicates=2))
    assert [chunk.shape for chunk in chunks] == [(1, 70_000)] * 2


def test_constant_benchmark_has_no_error() -> None:
    result = cluster_bootstrap([np.ones(10)])
    assert result.standard_error_J.tolist() == [0.0]


def test_paired_contrast_of_a_constant_shift_has_no_width() -> None:
    """The same problems for both: what they share cancels. Unpaired, the width would be 0.5."""
    second = np.repeat([0.0, 0.5], 15)
    contrast = paired_contrast(cluster_bootstrap([second + 0.25]), cluster_bootstrap([second]))
    assert contrast.difference_J == pytest.approx([0.25])
    assert (contrast.low_J[0], contrast.high_J[0]) == pytest.approx((0.25, 0.25))
    assert (contrast.macro_low, contrast.macro_high) == pytest.approx((0.25, 0.25))


def test_paired_contrast_is_the_bootstrap_of_the_difference() -> None:
    generator = np.random.default_rng(3)
    means = [[generator.random(30), generator.random(50)] for _ in range(2)]
    first, second = map(cluster_bootstrap, means)
    contrast = paired_contrast(first, second, level=0.9)
    difference = cluster_bootstrap([a - b for a, b in zip(*means, strict=True)])
    low, high = np.quantile(difference.macro_replicates_R, [0.05, 0.95])
    assert contrast.macro_difference == pytest.approx(difference.macro)
    assert (contrast.macro_low, contrast.macro_high) == pytest.approx((low, high))
    # A normal interval is 1.645 standard errors to each side.
    width = contrast.high_J - contrast.low_J
    np.testing.assert_allclose(width, 2 * 1.645 * difference.standard_error_J, rtol=0.05)
    # The other way round it is the mirror image.
    mirror = paired_contrast(second, first, level=0.9)
    assert mirror.macro_low == pytest.approx(-contrast.macro_high)


def gathered(means: list[np.ndarray], replicates: int = 10_000) -> np.ndarray:
    """The definition: the mean of the problems that each replicate draws."""
    columns = []
    for position, mean_P in enumerate(means):
        index = np.random.default_rng([0, position, mean_P.size]).integers(
            mean_P.size, size=(replicates, mean_P.size)
        )
        columns.append(mean_P[index].mean(axis=1))
    return np.stack(columns, axis=1)


def test_counting_draws_changes_no_result() -> None:
    """Shares in thirds and sevenths, which no sum of binary fractions represents exactly."""
    generator = np.random.default_rng(0)
    rows = [[generator.integers(22, size=size) / 21 for size in (30, 137)] for _ in range(5)]
    for row, result in zip(rows, cluster_bootstraps(rows), strict=True):
        np.testing.assert_allclose(result.replicates_RJ, gathered(row), rtol=0, atol=1e-12)
        alone = cluster_bootstrap(row)
        np.testing.assert_allclose(result.replicates_RJ, alone.replicates_RJ, rtol=0, atol=1e-12)
        assert result.problems_J == alone.problems_J == (30, 137)
        np.testing.assert_array_equal(result.mean_J, alone.mean_J)
        assert result.macro_standard_error == pytest.approx(alone.macro_standard_error)


def test_the_standard_error_of_two_problems_by_enumeration() -> None:
    """0 and 1: the four draws have means 0, 1/2, 1/2, 1, so sqrt(1/8); drawn with our indices."""
    index = np.random.default_rng([0, 0, 2]).integers(2, size=(10_000, 2))
    result = cluster_bootstrap([[0.0, 1.0]])
    np.testing.assert_array_equal(result.replicates_RJ[:, 0], index.sum(axis=1) / 2)
    assert result.standard_error_J[0] == pytest.approx(np.sqrt(1 / 8), rel=TOLERANCE)


def test_scipy_on_the_same_draws_has_the_same_replicates() -> None:
    means = np.random.default_rng(7).beta(0.5, 0.7, size=60)
    theirs = scipy.stats.bootstrap(
        (means,),
        np.mean,
        n_resamples=1000,
        method="percentile",
        rng=np.random.default_rng([0, 0, 60]),
    )
    ours = cluster_bootstrap([means], replicates=1000)
    np.testing.assert_allclose(ours.replicates_RJ[:, 0], theirs.bootstrap_distribution, rtol=1e-12)
    assert ours.standard_error_J[0] == pytest.approx(theirs.standard_error, rel=1e-9)


def test_rows_of_other_sizes_keep_their_places() -> None:
    """A benchmark that one method has not been measured on, filled with a single 0."""
    a, b = np.arange(30) / 30, np.arange(40) / 40
    whole, gap = cluster_bootstraps([[a, b], [a, [0.0]]], replicates=300)
    np.testing.assert_allclose(gap.replicates_RJ[:, 0], whole.replicates_RJ[:, 0], rtol=1e-12)
    assert not gap.replicates_RJ[:, 1].any()
    assert gap.problems_J == (30, 1)
    assert cluster_bootstraps([]) == []
    with pytest.raises(ValueError, match="the same benchmarks"):
        cluster_bootstraps([[a, b], [a]])


def test_equal_methods_are_not_told_apart() -> None:
    low = np.arange(10) / 30
    high, same, other = cluster_bootstraps([[low + 0.5], [low], [low]])
    better, equal = paired_contrast(high, same), paired_contrast(same, other)
    assert better.macro_difference == pytest.approx(0.5)
    assert better.macro_resolved
    assert better.resolved_J.tolist() == [True]
    assert not equal.macro_resolved
    assert equal.resolved_J.tolist() == [False]
    mirror = paired_contrast(same, high)
    assert mirror.macro_resolved
    assert mirror.resolved_J.tolist() == [True]


def test_a_difference_in_one_problem_is_not_resolved() -> None:
    """A replicate leaves that problem out with chance (9/10)^10 = 0.35: the interval begins at 0.

    Both methods solve the others in a third of the samples, whose sums are not exact: what is left
    of them in the difference is rounding, and no evidence.
    """
    other = np.full(10, 1 / 3)
    better = other.copy()
    better[0] = 2 / 3
    contrast = paired_contrast(*cluster_bootstraps([[better], [other]]))
    assert contrast.macro_low == pytest.approx(0, abs=1e-15)
    assert contrast.macro_high > 0.05
    assert not contrast.macro_resolved
    assert not contrast.resolved_J[0]


@pytest.mark.parametrize("bad", [[], [[]], [[0.5], []], [np.ones((2, 2))]])
def test_missing_problems(bad: list) -> None:
    with pytest.raises(ValueError, match="one mean per problem"):
        cluster_bootstrap(bad)


def test_other_bad_input() -> None:
    with pytest.raises(ValueError, match="finite"):
        cluster_bootstrap([[0.5, float("nan")]])
    with pytest.raises(ValueError, match="at least 2 replicates"):
        cluster_bootstrap([[0.5]], replicates=1)


def test_only_the_same_draws_are_paired() -> None:
    one = cluster_bootstrap([[0.5, 1.0]])
    with pytest.raises(ValueError, match="not paired"):
        paired_contrast(one, cluster_bootstrap([[0.5]]))
    with pytest.raises(ValueError, match="not paired"):
        paired_contrast(one, cluster_bootstrap([[0.5, 1.0]], seed=1))
    with pytest.raises(ValueError, match="not paired"):
        paired_contrast(one, cluster_bootstrap([[0.5, 1.0]], replicates=100))
    with pytest.raises(ValueError, match="between 0 and 1"):
        paired_contrast(one, one, level=95)
