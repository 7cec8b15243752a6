import numpy as np
import pytest

from respo.statistics import Needed, Variance, difference_variance, needed, smallest_number


def test_variance_with_one_seed_by_hand() -> None:
    """Two problems, differences 1 and 0: sample variance 1/2, of the mean 1/4.

    Noise: the second problem's share of 1/2 has the variance 1/2 * 1/2 / (2 - 1) = 1/4 with each
    method. Mean over problems 1/4, of their mean 1/8.
    """
    variance = difference_variance([([2, 1], 2)], [([0, 1], [2, 2])])
    assert variance.total == variance.problems == pytest.approx(1 / 4)
    assert variance.samples == pytest.approx(1 / 8)
    assert np.isnan(variance.seeds)


def test_variance_of_a_macro_average() -> None:
    """Each of two benchmarks counts a quarter of its variance: (1/4 + 1/16) / 4."""
    variance = difference_variance(
        [([2, 0], 2), ([1, 1], 2)],
        [([0, 0], 2), ([0, 1], 2)],
    )
    # Differences 1, 0 and 1/2, 0: sample variances 1/2 and 1/8.
    assert variance.total == pytest.approx((1 / 4 + 1 / 16) / 4)
    # Noise: 1/4 in three shares of the second benchmark, so 3/8 per problem, 3/16 of their mean.
    assert variance.samples == pytest.approx(3 / 64)


def test_variance_with_seeds_by_hand() -> None:
    """Differences [[1, 0], [1/2, 1/2]] of seeds by problems, all samples 4.

    Means of problems 3/4 and 1/4: variance 1/8, of the mean 1/16. Means of seeds 1/2 and 1/2:
    variance 0. Residuals +-1/4, mean square 4/16, so 1/16 for the mean of four. More seeds than
    problems differ less than the residuals explain: all of the variance is that of both together.
    """
    first = [([[4, 0], [2, 2]], 4)]
    second = [([[0, 0], [0, 0]], 4)]
    variance = difference_variance(first, second)
    # Noise: two shares of 1/2, each 1/4 / 3; mean over four 1/24, of the mean 1/96.
    assert variance == pytest.approx((1 / 16, 1 / 16, 1 / 96, 1 / 16))


def test_variance_between_seeds_alone() -> None:
    """Differences 0 and 1/2 of two seeds, the same on each problem: variance 1/8, of the mean 1/16.

    Another problem would change nothing, and neither would another sample.
    """
    first = [([[0, 0, 0], [4, 4, 4]], 4), ([[0, 0], [0, 0]], 4)]
    second = [([[0, 0, 0], [0, 0, 0]], 4), ([[0, 0], [0, 0]], 4)]
    variance = difference_variance(first, second)
    assert variance == pytest.approx((1 / 16, 0, 0, 1 / 16))
    # The difference is (0 + 1/2) / 2 = 1/4, and so is its error; 1.96 ** 2 times as many seeds.
    need = needed(0.25, variance)
    assert need.problems == need.samples == np.inf
    assert need.seeds == pytest.approx(1.96**2)
    assert smallest_number(2, need.seeds) == 8  # more than 7.68


def test_factors_by_hand() -> None:
    """z = 2 and a difference of 2: the variance may be up to 1.

    Of 3, problems divide 2.5: 1 - 0.5 is left for them, a fifth. Samples divide 1, and 2 remain,
    more than 1. Seeds divide 3: all.
    """
    need = needed(2.0, Variance(total=3.0, problems=2.5, samples=1.0, seeds=3.0), z=2.0)
    assert need == Needed(problems=5.0, samples=np.inf, seeds=3.0)
    assert needed(-2.0, Variance(3.0, 2.5, 1.0, 3.0), z=2.0) == need  # whichever is better
    # Ten times the difference: 100 may be; the problems' part 2.5 of 99.5.
    assert needed(20.0, Variance(3.0, 2.5, 1.0, 3.0), z=2.0).problems == pytest.approx(2.5 / 99.5)


def test_what_is_not_known() -> None:
    need = needed(2.0, Variance(total=3.0, problems=3.0, samples=np.nan, seeds=np.nan), z=2.0)
    assert need.problems == 3.0
    assert np.isnan(need.samples)
    assert np.isnan(need.seeds)
    # One sample per problem does not tell noise and problem apart; their sum it does.
    variance = difference_variance([([1, 0], 1)], [([0, 0], 1)])
    assert variance.problems == pytest.approx(1 / 4)
    assert np.isnan(variance.samples)


def test_no_difference_is_never_resolved() -> None:
    assert needed(0.0, Variance(1.0, 1.0, 1.0, 1.0)) == (np.inf, np.inf, np.inf)
    assert needed(0.0, Variance(0.0, 0.0, 0.0, 0.0)) == (np.inf, np.inf, np.inf)
    # Equal on every problem, without error: any number resolves it.
    assert needed(0.5, Variance(0.0, 0.0, 0.0, 0.0)) == (0.0, 0.0, 0.0)


def test_smallest_number() -> None:
    assert smallest_number(30, 2.5) == 76  # more than 75, which is only as much
    assert smallest_number(30, 2.51) == 76
    assert smallest_number(30, 0.1) == 4
    assert smallest_number(3, 0.0) == 1
    assert smallest_number(3, np.inf) is None
    assert smallest_number(3, np.nan) is None


@pytest.mark.parametrize("now", [4, 30])
def test_the_smallest_number_is_enough_and_one_less_is_not(now: int) -> None:
    """The definition of resolved, with the parts of the variance as they shrink."""
    variance, difference, z = Variance(3e-4, 2.4e-4, 1e-4, 1.6e-4), 0.03, 1.96
    for part, factor in zip(variance[1:], needed(difference, variance, z), strict=True):
        enough = smallest_number(now, factor)
        assert enough is not None
        errors = [
            np.sqrt(variance.total - part + part * now / number) for number in (enough, enough - 1)
        ]
        assert difference > z * errors[0]
        assert difference <= z * errors[1]


PROBLEMS, SEEDS, SAMPLES, RUNS = 60, 6, 4, 1500


def simulate(generator: np.random.Generator, *shape: int) -> tuple[np.ndarray, np.ndarray]:
    """Return chances of both methods by run, seed and problem.

    The second method's are 1/2; the first's have parts of standard deviation 0.15 (problem), 0.1
    (seed) and 0.1 (both) about 0.55.
    """
    runs, seeds, problems = shape
    chance = 0.55 + sum(
        scale * generator.choice([-1.0, 1.0], size=size)
        for scale, size in (
            (0.15, (runs, 1, problems)),
            (0.10, (runs, seeds, 1)),
            (0.10, (runs, seeds, problems)),
        )
    )
    return chance, np.full(shape, 0.5)


@pytest.mark.parametrize("seeds", [1, SEEDS])
def test_estimates_agree_with_simulation(seeds: int) -> None:
    """The mean estimate is the model's variance, which is also that of the simulated differences.

    Noise: p (1 - p) on average 1/4 for the second method, and 1/4 - (0.05^2 + 0.15^2 + 0.1^2 +
    0.1^2) = 0.205 for the first.
    """
    generator = np.random.default_rng(1)
    first, second = (
        generator.binomial(SAMPLES, chance) for chance in simulate(generator, RUNS, seeds, PROBLEMS)
    )
    estimates = np.array(
        [
            difference_variance([(a, SAMPLES)], [(b, SAMPLES)])
            for a, b in zip(first, second, strict=True)
        ]
    ).mean(axis=0)
    noise = (0.25 + 0.205) / SAMPLES / (seeds * PROBLEMS)
    both = 0.1**2 / (seeds * PROBLEMS) + noise
    problem, seed = 0.15**2 / PROBLEMS, 0.1**2 / seeds
    if seeds == 1:  # the seed's own part is that of these checkpoints, and not seen
        expected = [problem + both, problem + both, noise]
        seen = ((first - second).mean(axis=2) / SAMPLES).var() - seed
    else:
        expected = [problem + seed + both, problem + both, noise, seed + both]
        seen = ((first - second).mean(axis=(1, 2)) / SAMPLES).var()
    # Negative parts set to 0 bias the estimates upwards, but with these parts they are rare.
    np.testing.assert_allclose(estimates[: len(expected)], expected, rtol=0.06)
    assert seen == pytest.approx(expected[0], rel=0.12)  # 3 standard errors, sqrt(2 / 1500) each


def test_as_many_problems_as_needed_resolve_half_of_the_repetitions() -> None:
    """The number from the true variance of one problem, tried on new problems."""
    generator = np.random.default_rng(2)
    # Per problem 0.15^2 + 0.1^2 + noise, and no difference between seeds of one checkpoint.
    difference, one = 0.05, 0.15**2 + 0.1**2 + (0.25 + 0.215) / SAMPLES
    variance = Variance(one / PROBLEMS, one / PROBLEMS, 0.0, np.nan)
    number = smallest_number(PROBLEMS, needed(difference, variance).problems)
    assert number == 229  # 1.96^2 * 0.14875 / 0.05^2 = 228.6
    chance = np.clip(
        0.55
        + 0.15 * generator.choice([-1, 1], size=(RUNS, number))
        + 0.1 * generator.choice([-1, 1], size=(RUNS, number)),
        0,
        1,
    )
    first = generator.binomial(SAMPLES, chance) / SAMPLES
    second = generator.binomial(SAMPLES, 0.5, size=chance.shape) / SAMPLES
    d = first - second
    error = d.std(axis=1, ddof=1) / np.sqrt(number)
    assert (d.mean(axis=1) > 1.96 * error).mean() == pytest.approx(0.5, abs=0.04)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([], [], "the same benchmarks, at least one"),
        ([([1, 1], 2)], [], "the same benchmarks"),
        ([([1, 1], 2)], [([1, 1, 1], 2)], r"not on \(seeds, problems\) \(1, 2\) and \(1, 3\)"),
        ([([[1, 1]], 2)], [([[1, 1], [1, 1]], 2)], "the same problems and seeds"),
        ([([1], 2)], [([1], 2)], "at least 2 problems"),
        ([(np.ones((1, 1, 2)), 2)], [(np.ones((1, 1, 2)), 2)], "at least 2 problems"),
        ([([3, 1], 2)], [([1, 1], 2)], "at least one sample"),
        ([([0, 0], 0)], [([0, 0], 0)], "at least one sample"),
        (
            [([1, 1], 2), ([[1, 1], [1, 1]], 2)],
            [([1, 1], 2), ([[1, 1], [1, 1]], 2)],
            "the same seeds",
        ),
    ],
)
def test_bad_counts(first: list, second: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        difference_variance(first, second)


def test_bad_z() -> None:
    with pytest.raises(ValueError, match="z must be positive"):
        needed(1.0, Variance(1.0, 1.0, 1.0, 1.0), z=0.0)
