"""Time and memory of the bootstrap of ReSPO's whole Table 1, against ``scipy.stats.bootstrap``.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/statistics.py

24 rows (2 models x 3 N x 4 methods) of 7,384 made-up responses each to the six benchmarks, B =
10,000 replicates. The table has 24 x 7 standard errors, those of the macro average included; the
contrasts of every pair of methods of a block are 36 x 7 percentile intervals, for which ours draws
anew. All start from the same problem means and run in this process, in turns, on one thread; time
is processor time, the best of several rounds, so that other work on the machine disturbs less.
Memory is the most that was allocated at any moment.

scipy bootstraps one sample per call, or several for a statistic of all (the macro average). `one
call each` does that for every number; `together` gives it all rows of a benchmark as one array, in
batches, which shares draws between rows as ours does. scipy gets our generator, so that its draws
of a benchmark are ours and those results must be equal. Its macro averages draw once more, so they
must agree as two runs of 10,000 replicates do. The run ends with an error if any of this fails.
"""

import itertools
import time
import tracemalloc
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy
from machine import machine
from scipy.stats import bootstrap

from respo.statistics import cluster_bootstraps, paired_contrast, pairwise_contrasts

# Problems, and samples per problem: AIME 2025 and 2024, AMC 2023, OlympiadBench, Minerva, MATH-500.
BENCHMARKS = ((30, 16), (30, 16), (40, 16), (674, 4), (272, 4), (500, 4))
BLOCKS, METHODS, REPLICATES, SEED = 6, 4, 10_000, 0
MANY = 22  # methods of a large comparison
BATCH = 100  # replicates that scipy draws at a time: 24 x 100 x 674 values take 13 MB
ROUNDS = 3
OPTIONS = {"n_resamples": REPLICATES, "method": "percentile", "vectorized": True}
Row = list[np.ndarray]


class Result(NamedTuple):
    """Standard errors, and lower and upper ends of intervals, by row and benchmark, macro last."""

    error: np.ndarray
    low: np.ndarray
    high: np.ndarray


def main() -> None:
    rows = made_up_rows(BLOCKS * METHODS)
    many = cluster_bootstraps(made_up_rows(MANY))
    print(f"numpy {np.__version__}, scipy {scipy.__version__}, {machine()}")
    check(rows)
    each, together = "scipy, one call each", "scipy, together"
    race(
        {
            "24 x 7 standard errors": lambda: our_errors(rows),
            each: lambda: scipy_each(rows),
            together: lambda: scipy_together(rows),
        }
    )
    race(
        {
            "36 x 7 intervals of pairs": lambda: our_intervals(rows),
            each: lambda: scipy_each(differences(rows)),
            together: lambda: scipy_together(differences(rows)),
        }
    )
    race(
        {
            "7 standard errors of one row": lambda: our_errors(rows[:1]),
            each: lambda: scipy_each(rows[:1]),
        }
    )
    race({f"231 x 7 intervals, {MANY} rows drawn": lambda: list(pairwise_contrasts(many))})


def made_up_rows(count: int) -> list[Row]:
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


def pairs() -> list[tuple[int, int]]:
    """Return every pair of rows of a block."""
    blocks = [range(start, start + METHODS) for start in range(0, BLOCKS * METHODS, METHODS)]
    return [pair for block in blocks for pair in itertools.combinations(block, 2)]


def differences(rows: list[Row]) -> list[Row]:
    """Return what scipy has to bootstrap for paired contrasts."""
    return [[a - b for a, b in zip(rows[i], rows[j], strict=True)] for i, j in pairs()]


def our_errors(rows: list[Row]) -> np.ndarray:
    bootstraps = cluster_bootstraps(rows, REPLICATES, SEED)
    return np.array([[*b.standard_error_J, b.macro_standard_error] for b in bootstraps])


def our_intervals(rows: list[Row]) -> tuple[np.ndarray, np.ndarray]:
    bootstraps = cluster_bootstraps(rows, REPLICATES, SEED)
    contrasts = [paired_contrast(bootstraps[i], bootstraps[j]) for i, j in pairs()]
    return (
        np.array([[*c.low_J, c.macro_low] for c in contrasts]),
        np.array([[*c.high_J, c.macro_high] for c in contrasts]),
    )


def scipy_each(rows: list[Row]) -> Result:
    results = [scipy_bootstraps(row, OPTIONS) for row in rows]
    return Result(*(np.array(values) for values in zip(*results, strict=True)))


def scipy_together(rows: list[Row]) -> Result:
    benchmarks = [np.array(columns) for columns in zip(*rows, strict=True)]
    result = scipy_bootstraps(benchmarks, OPTIONS | {"axis": -1, "batch": BATCH})
    return Result(*(np.transpose(values) for values in result))


def scipy_bootstraps(benchmarks: list[np.ndarray], options: dict) -> Result:
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


def check(rows: list[Row]) -> None:
    """Compare all results in units of the standard error.

    That of 10,000 replicates has a relative error of 1 / sqrt(20,000), and a quantile at 2.5 % one
    of sqrt(0.025 * 0.975 / 10,000) / density(-1.96); the difference of two runs has sqrt(2) of it.
    """
    errors, (low, high) = our_errors(rows), our_intervals(rows)
    print("largest difference of scipy's results, in standard errors")
    for name, run in {"one call each": scipy_each, "together": scipy_together}.items():
        of_rows, of_pairs = run(rows), run(differences(rows))
        off_errors = np.abs(of_rows.error - errors) / errors
        off_ends = np.abs([of_pairs.low - low, of_pairs.high - high]) / of_pairs.error
        same = max(off_errors[:, :-1].max(), off_ends[..., :-1].max())
        anew = off_errors[:, -1].max(), off_ends[..., -1].max()
        print(
            f"  {name:16s} benchmarks, same draws {same:.0e}; macro averages, drawn anew: "
            f"errors {anew[0]:.3f} (sd 0.010), ends of intervals {anew[1]:.3f} (sd 0.038)"
        )
        assert same < 1e-9
        assert anew[0] < 5 * 0.010
        assert anew[1] < 5 * 0.038


def race(runs: dict[str, Callable[[], object]]) -> None:
    """Print time and memory of each, and the others' times as multiples of the first's."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    first = None
    for name, run in runs.items():
        tracemalloc.start()
        run()
        memory = tracemalloc.get_traced_memory()[1] / 2**20
        tracemalloc.stop()
        best = min(times[name])
        ratio = "" if first is None else f"{best / first:7.1f} x"
        first = first or best
        print(f"{name:34s}{best:8.3f} s{memory:6.0f} MiB{ratio}", flush=True)


if __name__ == "__main__":
    main()
