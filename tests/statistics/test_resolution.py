import numpy as np
import pytest

from respo.statistics import Variance, difference_variance, needed, smallest_number

# Two-sided quantiles for 95 %, from tables: of the normal distribution and of Student's t.
Z, T1, T2, T3 = 1.95996398, 12.7062047, 4.30265273, 3.18244631


def test_variance_with_one_seed_by_hand() -> None:
    """Two problems, differences 1 and 0: sample variance 1/2, of the mean 1/4.

    Noise: the second problem's share of 1/2 has the variance 1/2 * 1/2 / (2 - 1) = 1/4 with each
    method. Mean over problems 1/4, of their mean 1/8.
    """
    variance = difference_variance([([2, 1], 2)], [([0, 1], [2, 2])])
    assert variance.problems == pytest.approx(1 / 4)
    assert variance.samples == pytest.approx(1 / 8)
    assert np.isnan(variance.seeds)
    assert (variance.both, variance.number_of_seeds) == (0, 1)


def test_variance_of_a_macro_average() -> None:
    """Each of two benchmarks counts a quarter of its variance: (1/4 + 1/16) / 4."""
    variance = difference_variance(
        [([2, 0], 2), ([1, 1], 2)],
        [([0, 0], 2), ([0, 1], 2)],
    )
    # Differences 1, 0 and 1/2, 0: sample variances 1/2 and 1/8.
    assert variance.problems == pytest.approx((1 / 4 + 1 / 16) / 4)
    # Noise: 1/4 in three shares of the second benchmark, so 3/8 per problem, 3/16 of their mean.
    assert variance.samples == pytest.approx(3 / 64)


def test_variance_with_seeds_by_hand() -> None:
    """Differences [[1, 0], [1/2, 1/2]] of seeds by problems, all samples 4.

    Means of problems 3/4 and 1/4: variance 1/8, of the mean 1/16. Means of seeds 1/2 and 1/2:
    variance 0. Residuals +-1/4, mean square 4/16, so 1/16 for the mean of four.
    """
    first = [([[4, 0], [2, 2]], 4)]
    second = [([[0, 0], [0, 0]], 4)]
    variance = difference_variance(first, second)
    # Noise: two shares of 1/2, each 1/4 / 3; mean over four 1/24, of the mean 1/96.
    assert variance == pytest.approx((1 / 16, 1 / 96, 0, 1 / 16, 2))


def test_the_part_of_problems_alone_is_not_negative() -> None:
    """Differences [[1, 0], [0, 1]]: means of problems 1/2, but residuals +-1/2, by 4 so 1/4."""
    variance = difference_variance([([[1, 0], [0, 1]], 1)], [([[0, 0], [0, 0]], 1)])
    assert variance.both == pytest.approx(1 / 4)
    assert variance.problems == variance.both


@pytest.mark.parametrize(
    ("seeds", "t", "factor", "enough"),
    [
        # The difference is one error of the seeds. S' are enough where t^2 of S' - 1 degrees of
        # freedom is less than S' / S: 2.262^2 = 5.12 > 10/2, 2.228^2 = 4.96 < 11/2; and
        # 2.160^2 = 4.667 > 14/3 = 4.6667, 2.145^2 = 4.60 < 15/3.
        (2, T1, 5.5, 11),
        (3, T2, 5, 15),
    ],
)
def test_variance_between_seeds_alone(seeds: int, t: float, factor: float, enough: int) -> None:
    """Problems agree at each seed: another problem would change nothing, nor another sample."""
    first = np.array([0, 1 / 2] if seeds == 2 else [0, 1 / 4, 1 / 2])
    # Means 1/4; variance over seeds 1/8 or 1/16, of the mean 1/16 or 1/48.
    correct = np.repeat(4 * first[:, None], 3, axis=1)
    variance = difference_variance([(correct, 4)], [(0 * correct, 4)])
    error2 = first.var(ddof=1) / seeds
    assert variance.problems == pytest.approx(0)
    assert variance.seeds == pytest.approx(error2)
    # On either side of t errors of the seeds.
    assert needed(0.9999 * t * error2**0.5, variance).problems == np.inf
    assert needed(1.0001 * t * error2**0.5, variance).problems == pytest.approx(0)
    need = needed(error2**0.5, variance)
    assert need.problems == need.samples == np.inf
    assert need.seeds * seeds == pytest.approx(enough)
    assert need.seeds == pytest.approx(factor)


def test_rules_by_hand() -> None:
    """Of 9 in the mean square of the problems, 1 is that of both; that of three seeds is 4.

    Rule 1: d^2 > z^2 9. Rule 2: d^2 > z^2 8 + t^2 4 = 104.8, the larger one.
    """
    variance = Variance(problems=9.0, samples=0.5, seeds=4.0, both=1.0, number_of_seeds=3)
    limit = Z**2 * 8 + T2**2 * 4
    assert needed(1.0001 * limit**0.5, variance).seeds <= 1
    assert needed(0.9999 * limit**0.5, variance).seeds > 1
    need = needed(10.0, variance)
    # Problems divide z^2 8 + t^2 1, and leave t^2 3 of 100.
    assert need.problems == pytest.approx((Z**2 * 8 + T2**2) / (100 - 3 * T2**2))
    # Samples divide t^2 / 2, and leave z^2 8 + t^2 3.5 = 95.5.
    assert need.samples == pytest.approx((T2**2 / 2) / (100 - Z**2 * 8 - 3.5 * T2**2))
    # Four seeds: z^2 8 + 3.182^2 * 4 * 3/4 = 61.1.
    assert need.seeds == pytest.approx(4 / 3)
    assert needed(-10.0, variance) == need  # whichever is better
    # Below z^2 8 no number of seeds helps; below t^2 3 no number of problems.
    assert needed(0.9999 * Z * 8**0.5, variance).seeds == np.inf
    assert needed(0.9999 * T2 * 3**0.5, variance).problems == np.inf


def test_the_first_rule_holds_where_seeds_agree_by_chance() -> None:
    """Seeds that differ by less than their noise: rule 2 asks for z^2 8 alone, rule 1 for z^2 9."""
    variance = Variance(problems=9.0, samples=1.0, seeds=0.0, both=1.0, number_of_seeds=2)
    assert needed(1.0001 * Z * 3, variance).problems < 1
    need = needed(0.9999 * Z * 3, variance)
    assert need.problems > 1
    assert need.samples > 1
    assert need.seeds == pytest.approx(3 / 2)
    # Rule 1 with more samples: z^2 (8 + 1 / f) < d^2.
    assert needed(Z * 8.5**0.5, variance).samples == pytest.approx(2)


def test_one_seed_has_the_first_rule_alone() -> None:
    """z^2 3 is exceeded or not; of 3, samples divide 1 and leave 2."""
    variance = Variance(3.0, 1.0, np.nan, 0.0, 1)
    need = needed(Z * 2.5**0.5, variance)
    assert need.problems == pytest.approx(3 / 2.5)
    assert need.samples == pytest.approx(1 / 0.5)
    assert np.isnan(need.seeds)


def test_the_level_sets_both_quantiles() -> None:
    """For 99 %: z 2.57583, t of one degree of freedom 63.657."""
    variance = Variance(1.0, 0.0, 1.0, 0.0, 2)
    limit = (2.57583**2 + 63.657**2) ** 0.5
    assert needed(1.0001 * limit, variance, level=0.99).seeds <= 1
    assert needed(0.9999 * limit, variance, level=0.99).seeds > 1


def test_what_is_not_known() -> None:
    need = needed(2.0, Variance(3.0, np.nan, np.nan, 0.0, 1))
    assert need.problems == pytest.approx(3 * Z**2 / 4)
    assert np.isnan(need.samples)
    assert np.isnan(need.seeds)
    # One sample per problem does not tell noise and problem apart; their sum it does.
    variance = difference_variance([([1, 0], 1)], [([0, 0], 1)])
    assert variance.problems == pytest.approx(1 / 4)
    assert np.isnan(variance.samples)
    assert np.isnan(needed(1.0, Variance(1.0, np.nan, 1.0, 0.5, 3)).samples)


def test_no_difference_is_never_resolved() -> None:
    assert needed(0.0, Variance(1.0, 1.0, 1.0, 1.0, 2)) == (np.inf, np.inf, np.inf)
    assert needed(0.0, Variance(0.0, 0.0, 0.0, 0.0, 2)) == (np.inf, np.inf, np.inf)
    # Equal on every problem, without error: any number resolves it, of seeds two.
    assert needed(0.5, Variance(0.0, 0.0, 0.0, 0.0, 4)) == (0.0, 0.0, 0.5)
    # More than a million seeds are as good as never enough.
    assert needed(1e-3, Variance(0.0, 0.0, 1.0, 0.0, 2)).seeds == np.inf


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
    variance, difference = Variance(2.4e-4, 1e-4, 2e-5, 1.5e-5, 5), 0.015
    alone, t2 = Z**2 * (variance.problems - variance.both), 2.776445**2
    need = needed(difference, variance)
    number = smallest_number(now, need.problems)
    assert number is not None

    def limit(problems: int) -> float:
        seeds = variance.seeds - variance.both + variance.both * now / problems
        second = alone * now / problems + t2 * seeds
        return max(Z**2 * variance.problems * now / problems, second) ** 0.5

    assert limit(number) < difference <= limit(number - 1)


def test_the_number_of_seeds_is_enough_and_one_less_is_not() -> None:
    """With 5 % of t tabulated: 2.776 for five seeds, 2.571, 2.447, 2.365, 2.306, 2.262."""
    t = {2: T1, 3: T2, 4: T3, 5: 2.776445, 6: 2.570582, 7: 2.446912, 8: 2.364624, 9: 2.306004}
    variance = Variance(2.0, 0.0, 3.0, 1.0, 4)
    for difference in (3.3, 3.6, 4.0, 5.0, 7.0):
        need = needed(difference, variance)
        number = round(need.seeds * 4)
        limits = {s: (Z**2 + t[s] ** 2 * 3 * 4 / s) ** 0.5 for s in t}
        assert number == min([s for s in t if limits[s] < difference], default=number)
        assert number <= 9 or limits[9] >= difference


@pytest.mark.parametrize("seeds", [2, 3, 5])
@pytest.mark.parametrize(
    ("share", "rest"), [(0, "problems"), (0, "noise"), (0.5, "problems"), (0.5, "noise"), (1, "")]
)
def test_differences_that_are_none_are_rarely_resolved(seeds: int, share: float, rest: str) -> None:
    """At most about 5 %: of 600 repetitions 5 % and three standard errors are 46.

    The seeds' share of the variance of the mean difference is given; the rest is of one kind.
    """
    generator, problems, runs = np.random.default_rng(3), 60, 600
    between, within = (share * seeds) ** 0.5, 1 - share
    other = (within * problems) ** 0.5, (within * problems * seeds) ** 0.5
    resolved = 0
    for _ in range(runs):
        parts = between * generator.standard_normal((seeds, 1))
        if rest == "problems":
            parts = parts + other[0] * generator.standard_normal((1, problems))
        else:
            parts = parts + other[1] * generator.standard_normal((seeds, problems))
        difference = np.clip(0.01 * parts, -0.5, 0.5)
        variance = difference_variance(
            [(0.5 + difference, 1)], [(np.full_like(difference, 0.5), 1)]
        )
        resolved += needed(difference.mean(), variance).seeds <= 1
    assert resolved <= 46


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
        expected = [problem + both, noise]
        total = problem + both
        seen = ((first - second).mean(axis=2) / SAMPLES).var() - seed
    else:
        expected = [problem + both, noise, seed + both, both]
        total = problem + seed + both
        seen = ((first - second).mean(axis=(1, 2)) / SAMPLES).var()
    # A negative part set to 0 biases the estimates upwards, but with these parts it is rare.
    np.testing.assert_allclose(estimates[: len(expected)], expected, rtol=0.06)
    assert seen == pytest.approx(total, rel=0.12)  # 3 standard errors, sqrt(2 / 1500) each


def test_as_many_problems_as_needed_resolve_half_of_the_repetitions() -> None:
    """The number from the true variance of one problem, tried on new problems."""
    generator = np.random.default_rng(2)
    # Per problem 0.15^2 + 0.1^2 + noise, and no difference between seeds of one checkpoint.
    difference, one = 0.05, 0.15**2 + 0.1**2 + (0.25 + 0.215) / SAMPLES
    variance = Variance(one / PROBLEMS, 0.0, np.nan, 0.0, 1)
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


def test_as_many_seeds_as_needed_resolve_half_of_the_repetitions() -> None:
    """The number from the true variance of one seed, tried on new seeds that differ alone."""
    generator, difference = np.random.default_rng(4), 0.0168
    number = round(2 * needed(difference, Variance(0.0, 0.0, 0.02**2 / 2, 0.0, 2)).seeds)
    # t^2 must be less than S (0.0168 / 0.02)^2: with 7 seeds 5.99 is more than 4.94, with 8 5.59
    # less than 5.64.
    assert number == 8
    resolved = 0
    for macro_S in 0.5 + difference + 0.02 * generator.standard_normal((1000, number)):
        correct_SP = np.repeat(macro_S[:, None], 2, axis=1)
        variance = difference_variance([(correct_SP, 1)], [(np.full((number, 2), 0.5), 1)])
        resolved += needed(macro_S.mean() - 0.5, variance).seeds <= 1
    assert resolved / 1000 == pytest.approx(0.5, abs=0.08)


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


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_bad_level(level: float) -> None:
    with pytest.raises(ValueError, match="level must be between 0 and 1"):
        needed(1.0, Variance(1.0, 1.0, 1.0, 1.0, 2), level=level)
