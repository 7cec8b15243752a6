"""The bootstrap of ReSPO's whole Table 1, against ``scipy.stats.bootstrap``.

24 rows (2 models x 3 N x 4 methods) of 7,384 made-up responses each to the six benchmarks, B =
10,000 replicates. The table has 24 x 7 standard errors, those of the macro average included; the
contrasts of every pair of methods of a block are 36 x 7 percentile intervals, for which ours
draws anew. All start from the same problem means and run in one process, in turns, on one thread.

scipy bootstraps one sample per call, or several for a statistic of all (the macro average). `one
call each` does that for every number; `together` gives it all rows of a benchmark as one array,
in batches, which shares draws between rows as ours does. scipy gets our generator, so that its
draws of a benchmark are ours and those results must be equal. Its macro averages draw once more,
so they must agree as two runs of 10,000 replicates do. The run ends with an error if any of this
fails.
"""

import itertools
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.stats import bootstrap

from benchmarks.race import Row, compare, main, race, timed
from respo.statistics import cluster_bootstraps, paired_contrast

# Problems, and samples per problem: AIME 2025 and 2024, AMC 2023, OlympiadBench, Minerva, MATH-500.
BENCHMARKS = ((30, 16), (30, 16), (40, 16), (674, 4), (272, 4), (500, 4))
BLOCKS, METHODS, REPLICATES, SEED = 6, 4, 10_000, 0
BATCH = 100  # replicates that scipy draws at a time: 24 x 100 x 674 values take 13 MB
ROUNDS = 3
OPTIONS = {"n_resamples": REPLICATES, "method": "percentile", "vectorized": True}
Means = list[np.ndarray]  # of the problems of each benchmark


class Result(NamedTuple):
    """Standard errors, and lower and upper ends of intervals, by row and benchmark, macro last."""

    error: np.ndarray
    low: np.ndarray
    high: np.ndarray


def rows(quick: bool) -> Iterator[Row]:
    if quick:
        OPTIONS["n_resamples"] = 200
    replicates = OPTIONS["n_resamples"]
    means = made_up_rows(METHODS if quick else BLOCKS * METHODS)
    if not quick:
        check(means)
    peers = {"scipy, one call each": scipy_each, "scipy, together": scipy_together}
    cases: dict[str, tuple[Callable[[], object], list[Means]]] = {
        f"{len(means)} x 7 standard errors": (partial(our_errors, means, replicates), means),
        f"{len(pairs(means))} x 7 intervals of pairs": (
            partial(our_intervals, means, replicates),
            differences(means),
        ),
        "7 standard errors of one row": (partial(our_errors, means[:1], replicates), means[:1]),
    }
    for name, (run, given) in cases.items():
        runs = {"": run} | {peer: partial(theirs, given) for peer, theirs in peers.items()}
        taken = race({key: partial(timed, each) for key, each in runs.items()}, ROUNDS, False)
        memory = {key: [peak_mb(each)] for key, each in runs.items()}
        for peer in peers:
            yield compare(name, "s", taken[""], peer, taken[peer])
            yield Row(f"{name}: memory", "MB", memory[""], peer, memory[peer])


def peak_mb(run: Callable[[], object]) -> float:
    """Most memory that is allocated at any moment, MB."""
    tracemalloc.start()
    run()
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return peak


def made_up_rows(count: int) -> list[Means]:
    """Return the problem means of responses that are correct with a chance of row and problem."""
    generator = np.random.default_rng(0)
    ease = [generator.normal(-0.5, 1.5, problems) for problems, _ in BENCHMARKS]
    rows = []
    for _ in range(count):
        skill = generator.normal(0, 0.3)
        rows.append(
            [
                generator.binomial(samples, 1 / (1 + np.exp(-ease_P - skill))) / samples
                for ease_P, (_, samples) in zip(ease, BENCHMARKS, strict=True)
            ]
        )
    return rows


def pairs(rows: list[Means]) -> list[tuple[int, int]]:
    """Return every pair of rows of a block."""
    blocks = [range(start, start + METHODS) for start in range(0, len(rows), METHODS)]
    return [pair for block in blocks for pair in itertools.combinations(block, 2)]


def differences(rows: list[Means]) -> list[Means]:
    """Return what scipy has to bootstrap for paired contrasts."""
    return [[a - b for a, b in zip(rows[i], rows[j], strict=True)] for i, j in pairs(rows)]


def our_errors(rows: list[Means], replicates: int = REPLICATES) -> np.ndarray:
    bootstraps = cluster_bootstraps(rows, replicates, SEED)
    return np.array([[*b.standard_error_J, b.macro_standard_error] for b in bootstraps])


def our_intervals(rows: list[Means], replicates: int = REPLICATES) -> tuple[np.ndarray, np.ndarray]:
    bootstraps = cluster_bootstraps(rows, replicates, SEED)
    contrasts = [paired_contrast(bootstraps[i], bootstraps[j]) for i, j in pairs(rows)]
    return (
        np.array([[*c.low_J, c.macro_low] for c in contrasts]),
        np.array([[*c.high_J, c.macro_high] for c in contrasts]),
    )


def scipy_each(rows: list[Means]) -> Result:
    results = [scipy_bootstraps(row, OPTIONS) for row in rows]
    return Result(*(np.array(values) for values in zip(*results, strict=True)))


def scipy_together(rows: list[Means]) -> Result:
    benchmarks = [np.array(columns) for columns in zip(*rows, strict=True)]
    result = scipy_bootstraps(benchmarks, OPTIONS | {"axis": -1, "batch": BATCH})
    return Result(*(np.transpose(values) for values in result))


def scipy_bootstraps(benchmarks: Means, options: dict) -> Result:
    """Bootstrap each benchmark, problems last, and then their macro average."""
    results = [
        bootstrap((means,), np.mean, rng=draws(position, means.shape[-1]), **options)
        for position, means in enumerate(benchmarks)
    ]
    rng = np.random.default_rng(SEED)
    results.append(bootstrap(tuple(benchmarks), macro, rng=rng, **options))
    intervals = [result.confidence_interval for result in results]
    return Result(
        np.array([result.standard_error for result in results]),
        np.array([interval.low for interval in intervals]),
        np.array([interval.high for interval in intervals]),
    )


def draws(position: int, problems: int) -> np.random.Generator:
    """Return a generator of the draws that `cluster_bootstraps` makes."""
    return np.random.default_rng([SEED, position, problems])


def macro(*samples: np.ndarray, axis: int) -> np.ndarray:
    return sum(sample.mean(axis=axis) for sample in samples) / len(samples)


def check(rows: list[Means]) -> None:
    """Compare all results in units of the standard error.

    That of 10,000 replicates has a relative error of 1 / sqrt(20,000), and a quantile at 2.5 % one
    of sqrt(0.025 * 0.975 / 10,000) / density(-1.96); the difference of two runs has sqrt(2) of it.
    """
    errors, (low, high) = our_errors(rows), our_intervals(rows)
    for run in (scipy_each, scipy_together):
        of_rows, of_pairs = run(rows), run(differences(rows))
        off_errors = np.abs(of_rows.error - errors) / errors
        off_ends = np.abs([of_pairs.low - low, of_pairs.high - high]) / of_pairs.error
        same = max(off_errors[:, :-1].max(), off_ends[..., :-1].max())
        anew = off_errors[:, -1].max(), off_ends[..., -1].max()
        assert same < 1e-9
        assert anew[0] < 5 * 0.010
        assert anew[1] < 5 * 0.038


if __name__ == "__main__":
    main(rows, __doc__)
