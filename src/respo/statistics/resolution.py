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
samples only the noise: with infinitely many of one kind the rest remains. A difference is resolved
where it exceeds z standard errors. With f times as many of a kind, whose part of the variance v is
v_kind, it is resolved where

    |difference| > z sqrt(v - v_kind + v_kind / f),   that is
    f > v_kind / ((difference / z)^2 - (v - v_kind)),

and with no f at all where the remaining variance v - v_kind alone is too large.

The parts are estimated without bias by the mean squares of a two-way layout with random effects
(Searle, Casella and McCulloch, Variance Components, 1992, Ch. 4) and by c (K - c) / (K (K - 1))
for p (1 - p) of c correct samples. For problems and samples with one seed this is the
decomposition of Miller, Adding Error Bars to Evals (2024).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Variance(NamedTuple):
    """Variance of a mean difference, and the parts of it that more of a kind divides.

    The parts overlap: the noise of samples belongs to all three. NaN is what the data do not tell:
    seeds with one seed, samples with one sample of a problem. With one seed the total is that for
    these two checkpoints alone, as it is for the cluster bootstrap.
    """

    total: float
    problems: float
    samples: float
    seeds: float


class Needed(NamedTuple):
    """How many times as many of a kind, the others as they are, would resolve a difference.

    At most 1: it is resolved already, and that share of them would do. inf: no number of this
    kind is enough, since the variance that it leaves is too large by itself. NaN: not known.
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
        return Variance(problems, problems, _at_most(samples, problems), np.nan)
    macro_S = np.mean([difference_SP.mean(axis=1) for difference_SP, _ in pairs], axis=0)
    both = weight * sum(_interaction(difference_SP) for difference_SP, _ in pairs)
    # An estimate of the part of problems or seeds alone that is negative is 0.
    problems, by_seeds = max(problems, both), max(macro_S.var(ddof=1) / seeds, both)
    return Variance(problems + by_seeds - both, problems, _at_most(samples, both), by_seeds)


def needed(difference: float, variance: Variance, z: float = 1.96) -> Needed:
    """Return how many times as many problems, samples or seeds would resolve a difference.

    It is resolved where it exceeds z standard errors, if it stays as large as it is. With just
    that many, a repetition resolves a true difference of this size in half of the cases; for 4 of
    5, add 0.84 to z.

    Args:
        difference: as observed, or one that matters.
        variance: of the difference.
        z: 1.96 for an interval of 95 %.

    Raises:
        ValueError: z is not positive.
    """
    if not z > 0:
        raise ValueError(f"z must be positive, not {z}")
    enough = (difference / z) ** 2
    return Needed(*(_factor(part, enough - (variance.total - part)) for part in variance[1:]))


def smallest_number(now: int, factor: float) -> int | None:
    """Return the least number of problems, samples or seeds that is enough, from that of now.

    None where no number is, or where it is not known. At least 1.
    """
    if not np.isfinite(factor):
        return None
    return max(1, int(np.floor(now * factor)) + 1)  # more than, not as much as


def _factor(part: float, room: float) -> float:
    if np.isnan(part):
        return np.nan
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
