"""The cluster bootstrap over problems (ReSPO, App. D.3).

A problem's samples stay together: a replicate draws problems with replacement, within each
benchmark and independently of the other benchmarks, and averages their means. Drawing single
samples instead would take the samples of a problem for independent, and the error for far smaller
than it is.

The draws depend only on the seed, the position of the benchmark in the list and its number of
problems. Two methods on the same benchmarks therefore see the same draws, which is what makes the
difference of their replicates a paired contrast: give their problems in the same order.

A replicate's mean needs only how often each problem was drawn. Draws are therefore counted once
for all methods, and one product of matrices gives the replicates of all of them.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

_CHUNK = 2**15  # indices drawn at a time: 0.26 MB stay in cache, 10,000 x 674 would take 54
# Exact differences are multiples of 1 / (problems x samples x seeds); what is smaller is rounding.
_ROUNDING = 1e-12


class Bootstrap(NamedTuple):
    """Means of J benchmarks, their macro average (equal weights), and R replicates of both.

    problems_J and seed say which draws the replicates come from.
    """

    problems_J: tuple[int, ...]
    seed: int
    mean_J: np.ndarray
    macro: float
    replicates_RJ: np.ndarray
    macro_replicates_R: np.ndarray

    @property
    def standard_error_J(self) -> np.ndarray:
        """Standard deviation of each benchmark's replicates."""
        return self.replicates_RJ.std(axis=0, ddof=1)

    @property
    def macro_standard_error(self) -> float:
        """Standard deviation of the macro average's replicates."""
        return float(self.macro_replicates_R.std(ddof=1))


class Contrast(NamedTuple):
    """Difference of two methods with its percentile interval, by benchmark and macro average.

    Among many contrasts, as many as 1 - level of those without a difference count as resolved: an
    interval speaks for its own contrast alone.
    """

    difference_J: np.ndarray
    low_J: np.ndarray
    high_J: np.ndarray
    macro_difference: float
    macro_low: float
    macro_high: float

    @property
    def resolved_J(self) -> np.ndarray:
        """Whether the interval leaves out 0: these problems suffice to tell the two apart."""
        return (self.low_J > _ROUNDING) | (self.high_J < -_ROUNDING)

    @property
    def macro_resolved(self) -> bool:
        """Whether the macro average's interval leaves out 0."""
        return self.macro_low > _ROUNDING or self.macro_high < -_ROUNDING


def cluster_bootstrap(
    problem_means_by_benchmark: Sequence[ArrayLike], replicates: int = 10_000, seed: int = 0
) -> Bootstrap:
    """Bootstrap the mean of each benchmark and their macro average.

    Args:
        problem_means_by_benchmark: for each benchmark the mean correctness of each of its problems.
        replicates: R.
        seed: with the same seed the same draws.

    Raises:
        ValueError: no benchmark, one without problems or with a value that is not finite, or fewer
            than 2 replicates.
    """
    return cluster_bootstraps([problem_means_by_benchmark], replicates, seed)[0]


def cluster_bootstraps(
    rows: Sequence[Sequence[ArrayLike]], replicates: int = 10_000, seed: int = 0
) -> list[Bootstrap]:
    """Bootstrap many methods at once, each as `cluster_bootstrap` does and on the same draws.

    The results are those of one call per method up to rounding (1e-12), much faster.

    Args:
        rows: for each method what `cluster_bootstrap` takes.
        replicates: R.
        seed: with the same seed the same draws.

    Raises:
        ValueError: as for `cluster_bootstrap`; or the rows differ in their number of benchmarks.
    """
    means = [_checked(row) for row in rows]
    if len({len(row) for row in means}) > 1:
        raise ValueError("rows that are bootstrapped together need the same benchmarks")
    if replicates < 2:
        raise ValueError(f"the bootstrap needs at least 2 replicates, not {replicates}")
    # Column by column in memory, as they are written here and read by errors and quantiles.
    replicates_by_row = [np.empty((replicates, len(row)), order="F") for row in means]
    for position, column in enumerate(zip(*means, strict=True)):
        for problems in {mean_P.size for mean_P in column}:
            same = [index for index, mean_P in enumerate(column) if mean_P.size == problems]
            mean_PM = np.stack([column[index] for index in same], axis=1)
            replicates_RM = _replicates(mean_PM, _draws(seed, position, problems, replicates))
            for index, replicates_R in zip(same, replicates_RM.T, strict=True):
                replicates_by_row[index][:, position] = replicates_R
    return [
        _bootstrap(row, seed, replicates_RJ)
        for row, replicates_RJ in zip(means, replicates_by_row, strict=True)
    ]


def paired_contrast(first: Bootstrap, second: Bootstrap, level: float = 0.95) -> Contrast:
    """Compare two methods: first minus second, on the same draws of problems.

    Args:
        first: of problems in the same order as those of ``second``.
        second: with the same seed and as many replicates.
        level: share of the replicates inside the interval.

    Raises:
        ValueError: the two come from other draws, or a level that is no share.
    """
    draws = [(b.problems_J, b.seed, len(b.macro_replicates_R)) for b in (first, second)]
    if draws[0] != draws[1]:
        raise ValueError(f"not paired: (problems, seed, replicates) are {draws[0]} and {draws[1]}")
    if not 0 < level < 1:
        raise ValueError(f"the level of an interval lies between 0 and 1, not at {level}")
    ends = [(1 - level) / 2, (1 + level) / 2]
    low_J, high_J = np.quantile(first.replicates_RJ - second.replicates_RJ, ends, axis=0)
    low, high = np.quantile(first.macro_replicates_R - second.macro_replicates_R, ends)
    return Contrast(
        first.mean_J - second.mean_J,
        low_J,
        high_J,
        first.macro - second.macro,
        float(low),
        float(high),
    )


def _checked(problem_means_by_benchmark: Sequence[ArrayLike]) -> list[np.ndarray]:
    means = [np.asarray(mean_P, dtype=np.float64) for mean_P in problem_means_by_benchmark]
    if not means or any(mean_P.ndim != 1 or not mean_P.size for mean_P in means):
        raise ValueError("the bootstrap needs for each benchmark one mean per problem")
    if not all(np.isfinite(mean_P).all() for mean_P in means):
        raise ValueError("the bootstrap needs finite means: a problem without samples has none")
    return means


def _bootstrap(means: list[np.ndarray], seed: int, replicates_RJ: np.ndarray) -> Bootstrap:
    mean_J = np.array([mean_P.mean() for mean_P in means])
    return Bootstrap(
        tuple(mean_P.size for mean_P in means),
        seed,
        mean_J,
        float(mean_J.mean()),
        replicates_RJ,
        replicates_RJ.mean(axis=1),
    )


def _replicates(mean_PM: np.ndarray, draws: Iterator[np.ndarray]) -> np.ndarray:
    """Return the replicates of M methods on one benchmark, shape (R, M)."""
    return np.concatenate([_counts(index_RP) @ mean_PM for index_RP in draws]) / len(mean_PM)


def _counts(index_RP: np.ndarray) -> np.ndarray:
    """Return how often each replicate draws each problem, shape (R, P), as float64 for BLAS.

    The indices are used up.
    """
    rows, problems = index_RP.shape
    # In place: another array would add a fifth to the most memory.
    index_RP += problems * np.arange(rows)[:, np.newaxis]
    count_RP = np.bincount(index_RP.ravel(), minlength=rows * problems).reshape(rows, problems)
    return count_RP.astype(np.float64)


def _draws(seed: int, position: int, problems: int, replicates: int) -> Iterator[np.ndarray]:
    """Yield indices of problems, a chunk of replicates at a time."""
    generator = np.random.default_rng([seed, position, problems])
    chunk = max(1, _CHUNK // problems)
    for start in range(0, replicates, chunk):
        rows = min(chunk, replicates - start)
        yield generator.integers(problems, size=(rows, problems))
