"""How many problems, samples or seeds would tell two methods apart.

Model of the difference of two methods on problem i with training seed s, in a benchmark of P
problems, each answered K times by each method, with S seeds of each:

    d_is = delta + problem_i + seed_s + interaction_is + noise_is

The parts are independent, with mean 0. The noise is that of sampling: with the chance p that a
sample is correct, its variance is the mean of p_first (1 - p_first) / K + p_second (1 - p_second)
/ K. The mean difference has the variance

    var(problem) / P + var(seed) / S + (var(interaction) + var(noise)) / (P S)

for one benchmark, and in the macro average of J benchmarks each benchmark's parts count 1 / J^2.
More problems divide all but the seeds' part, more seeds all but the problems' part, and more
samples only the noise: with infinitely many of one kind the rest remains.

Three mean squares of a two-way layout with random effects (Searle, Casella and McCulloch, Variance
Components, 1992, Ch. 4), each scaled to the mean difference, estimate these parts:

    problems   var(problem) / P + both, with P - 1 degrees of freedom
    seeds      var(seed) / S + both,    with S - 1
    both       (var(interaction) + var(noise)) / (P S), with (P - 1) (S - 1)

and c (K - c) / (K (K - 1)) for p (1 - p) of c correct samples estimates the noise in it. For
problems and samples with one seed this is the decomposition of Miller, Adding Error Bars to Evals
(2024).

A difference d is resolved where

    d^2 > z^2 problems                               other problems would not change its sign
    d^2 > z^2 (problems - both) + t^2 seeds          nor would other problems and seeds together

with z = 1.96, the quantile of the normal distribution for 95 %, and t that of Student's t with
S - 1 degrees of freedom: 12.7 with two seeds, 4.30 with three, 2.78 with five. The seeds' spread is
known from as few numbers as there are seeds, so that it must count by its own quantile; problems
are many. Such a sum of t_i^2 v_i covers a mean at least as often as its level says, whatever the
true variances are (Banerjee, Sankhya 22, 1960, 357-358). `both` is part of the seeds' mean square,
which has few degrees of freedom, and therefore belongs to the second term.

Simulated, the share in percent of differences that are none and yet resolved (normal parts, 60
problems, 40,000 repetitions each; the seeds' share of the variance of the mean difference is 0, 1/2
or 1, and all of the rest is the problems' or all is noise):

    seeds' share            0      0     1/2    1/2     1
    the rest is       problems  noise  problems  noise
    2 seeds               5.6    0.5     1.7    1.7    4.9
    3 seeds               5.5    1.0     2.5    2.5    4.9
    5 seeds               5.4    1.7     3.6    3.6    5.1
    10 seeds              5.4    2.5     4.4    4.2    4.8

With z in place of t, seeds that are all of the variance make it 30 % with two, 19 % with three,
even if the difference must have one sign at all of them. The price of t is power where seeds
matter. If they are all of the variance, and the difference has the standard deviation s over seeds,
four of five repetitions resolve a true difference of 12 s with two seeds, of 3.3 s with three, of
1.7 s with five. Up to four seeds a difference that is resolved has one sign at all of them: with
one on the other side, the mean of four is at most 3 standard errors, and t is 3.18. Of more seeds
one may be on the other side by chance; to forbid that would leave little power (of twelve seeds
that are just enough one is nearly always).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

# More seeds than these are as good as never enough.
MANY = 10**6


class Variance(NamedTuple):
    """Estimates of the parts of the variance of a mean difference, which overlap.

    problems: what more problems divide, with one seed all that there is. seeds: what more seeds
    divide, and NaN with one. both: the part that belongs to both, 0 with one seed. samples: the
    part of it that more samples divide, and NaN with one sample of a problem. number_of_seeds: S.
    """

    problems: float
    samples: float
    seeds: float
    both: float
    number_of_seeds: int


class Needed(NamedTuple):
    """How many times as many of a kind, the others as they are, would resolve a difference.

    At most 1: it is resolved already, and that share of them would do. inf: no number of this
    kind is enough, since the variance that it leaves is too large by itself. NaN: not known. That
    of the seeds stands for a whole number of them, the least that is enough.
    """

    problems: float
    samples: float
    seeds: float


# Correct samples and samples of a benchmark's problems, shape (S, P), or (P,) for one seed.
Counts = tuple[ArrayLike, ArrayLike]


def difference_variance(first: Sequence[Counts], second: Sequence[Counts]) -> Variance:
    """Return the variance of the difference of two methods' macro averages.

    Args:
        first: for each benchmark the correct samples of its problems, and their numbers of samples
            (or one number), for each seed.
        second: of the other method: the same problems in the same order, and the same seeds.

    Raises:
        ValueError: the two differ in benchmarks, problems or seeds; a benchmark has fewer than 2
            problems; or counts that cannot be.
    """
    if not first or len(first) != len(second):
        raise ValueError("two methods are compared on the same benchmarks, at least one")
    pairs = [_pair(a, b) for a, b in zip(first, second, strict=True)]
    seeds = len(pairs[0][0])
    if any(len(difference_SP) != seeds for difference_SP, _ in pairs):
        raise ValueError("each benchmark needs the same seeds")
    weight = 1 / len(pairs) ** 2
    problems = samples = 0.0
    for difference_SP, noise_SP in pairs:
        of_mean = difference_SP.mean(axis=0)
        problems += weight * of_mean.var(ddof=1) / of_mean.size
        samples += weight * noise_SP.mean() / noise_SP.size
    if seeds == 1:
        return Variance(problems, _at_most(samples, problems), np.nan, 0.0, 1)
    macro_S = np.mean([difference_SP.mean(axis=1) for difference_SP, _ in pairs], axis=0)
    both = weight * sum(_interaction(difference_SP) for difference_SP, _ in pairs)
    # The part of problems alone is not negative.
    problems, by_seeds = max(problems, both), macro_S.var(ddof=1) / seeds
    return Variance(problems, _at_most(samples, both), by_seeds, both, seeds)


def needed(difference: float, variance: Variance, level: float = 0.95) -> Needed:
    """Return how many times as many problems, samples or seeds would resolve a difference.

    They would if it stays as large as it is. With just that many, a repetition resolves a true
    difference of this size in about half of the cases.

    Args:
        difference: as observed, or one that matters.
        variance: of the difference.
        level: 0.95 for 1.96; about 5 % of the differences that are none, or fewer, are resolved.

    Raises:
        ValueError: level is not between 0 and 1.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be between 0 and 1, not {level}")
    problems, samples, seeds, both, number = variance
    z2 = _quantile(level) ** 2
    alone = z2 * (problems - both)
    # Of each rule: what problems divide, what samples divide, and the whole.
    rules = [(z2 * problems, z2 * samples, z2 * problems)]
    if number > 1:
        t2 = _quantile(level, number - 1) ** 2
        rules.append((alone + t2 * min(both, seeds), t2 * min(samples, seeds), alone + t2 * seeds))
    square = difference**2
    return Needed(
        max(_factor(part, square - (whole - part)) for part, _, whole in rules),
        max(_factor(part, square - (whole - part)) for _, part, whole in rules),
        _seeds(square - alone, variance, level) / number if number > 1 else np.nan,
    )


def _quantile(level: float, freedom: int | None = None) -> float:
    """Return the two-sided quantile of Student's t, or of the normal distribution.

    Args:
        level: 0.95 for 1.96.
        freedom: degrees of freedom; None for the normal distribution.
    """
    # Imported here: it takes 0.3 s, and Snakemake reads this file at every start.
    from scipy.special import ndtri, stdtrit

    upper = (1 + level) / 2
    return float(ndtri(upper) if freedom is None else stdtrit(freedom, upper))


def smallest_number(now: int, factor: float) -> int | None:
    """Return the least number of problems or samples that is enough, from that of now.

    None where no number is, or where it is not known. At least 1.
    """
    if not np.isfinite(factor):
        return None
    return max(1, int(np.floor(now * factor)) + 1)  # more than, not as much as


def _seeds(room: float, variance: Variance, level: float) -> float:
    """Return the least number of seeds whose part fits into the room; inf where none is."""
    of_one, both = (part * variance.number_of_seeds for part in (variance.seeds, variance.both))
    z2 = _quantile(level) ** 2
    largest = z2 * max(of_one, both)
    if room <= largest / MANY:
        return np.inf
    # Student's quantile is the larger one: no smaller number is enough.
    number = max(2, int(largest / room))
    while max(_quantile(level, number - 1) ** 2 * of_one, z2 * both) / number >= room:
        number += 1
    return number


def _factor(part: float, room: float) -> float:
    if room <= 0:
        return np.inf
    return part / room


def _pair(first: Counts, second: Counts) -> tuple[np.ndarray, np.ndarray]:
    """Return the difference of the shares of correct samples, and the variance of its noise."""
    (first_SP, first_noise_SP), (second_SP, second_noise_SP) = _share(first), _share(second)
    if first_SP.shape != second_SP.shape:
        raise ValueError(
            "two methods are compared on the same problems and seeds, not on (seeds, problems) "
            f"{first_SP.shape} and {second_SP.shape}"
        )
    return first_SP - second_SP, first_noise_SP + second_noise_SP


def _share(counts: Counts) -> tuple[np.ndarray, np.ndarray]:
    correct_SP = np.atleast_2d(np.asarray(counts[0], dtype=np.float64))
    samples_SP = np.broadcast_to(np.asarray(counts[1], dtype=np.float64), correct_SP.shape)
    if correct_SP.ndim != 2 or correct_SP.shape[1] < 2:
        raise ValueError("the variance between problems needs at least 2 problems")
    if np.any(samples_SP < 1) or np.any(correct_SP < 0) or np.any(correct_SP > samples_SP):
        raise ValueError("each problem needs at least one sample, and 0 to that many correct ones")
    share_SP = correct_SP / samples_SP
    spread_SP = share_SP * (1 - share_SP)
    with np.errstate(invalid="ignore", divide="ignore"):
        return share_SP, np.where(samples_SP > 1, spread_SP / (samples_SP - 1), np.nan)


def _interaction(difference_SP: np.ndarray) -> float:
    """Return the part of seeds and problems together: the residual mean square by P and S."""
    seeds, problems = difference_SP.shape
    residual_SP = (
        difference_SP
        - difference_SP.mean(axis=0)
        - difference_SP.mean(axis=1, keepdims=True)
        + difference_SP.mean()
    )
    mean_square = (residual_SP**2).sum() / ((seeds - 1) * (problems - 1))
    return mean_square / (seeds * problems)


def _at_most(samples: float, limit: float) -> float:
    """Return the part of the noise, which is part of another; NaN stays NaN."""
    return float(np.minimum(samples, limit))
