"""The cluster bootstrap over problems (ReSPO, App. D.3).

A problem's samples stay together: a replicate draws problems with replacement, within each
benchmark and independently of the other benchmarks, and averages their means. Drawing single
samples instead would take the samples of a problem for independent, and the error for far smaller
than it is.

The draws depend only on the seed, the position of the benchmark in the list and its number of
problems. Two methods on the same benchmarks therefore see the same draws, which is what makes the
difference of their replicates a paired contrast: give their problems in the same order.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

_CHUNK = 500  # replicates drawn at a time: 500 x 674 indices take 3 MB, 10,000 would take 54


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
    """Difference of two methods with its percentile interval, by benchmark and macro average."""

    difference_J: np.ndarray
    low_J: np.ndarray
    high_J: np.ndarray
    macro_difference: float
    macro_low: float
    macro_high: float


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
    means = [np.asarray(mean_P, dtype=np.float64) for mean_P in problem_means_by_benchmark]
    if not means or any(mean_P.ndim != 1 or not mean_P.size for mean_P in means):
        raise ValueError("the bootstrap needs for each benchmark one mean per problem")
    if not all(np.isfinite(mean_P).all() for mean_P in means):
        raise ValueError("the bootstrap needs finite means: a problem without samples has none")
    if replicates < 2:
        raise ValueError(f"the bootstrap needs at least 2 replicates, not {replicates}")
    replicates_RJ = np.stack(
        [
            np.concatenate(
                [
                    mean_P[index_RP].mean(axis=1)
                    for index_RP in _draws(seed, position, mean_P.size, replicates)
                ]
            )
            for position, mean_P in enumerate(means)
        ],
        axis=1,
    )
    mean_J = np.array([mean_P.mean() for mean_P in means])
    return Bootstrap(
        tuple(mean_P.size for mean_P in means),
        seed,
        mean_J,
        float(mean_J.mean()),
        replicates_RJ,
        replicates_RJ.mean(axis=1),
    )


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


def _draws(seed: int, position: int, problems: int, replicates: int) -> Iterator[np.ndarray]:
    """Yield indices of problems, a chunk of replicates at a time."""
    generator = np.random.default_rng([seed, position, problems])
    for start in range(0, replicates, _CHUNK):
        rows = min(_CHUNK, replicates - start)
        yield generator.integers(problems, size=(rows, problems))
