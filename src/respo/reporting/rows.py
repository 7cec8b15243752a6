"""The rows of a table: (model, N, method), pooled over seeds, with errors from one bootstrap."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import numpy as np

from respo.cli import UserError
from respo.config import Run
from respo.reporting.results import Cell, Results
from respo.statistics import Bootstrap, across_seeds, cluster_bootstrap, paired_contrast

MACRO = "macro"


class Estimate(NamedTuple):
    """pass@1 in [0, 1] and its cluster-bootstrap standard error."""

    value: float
    error: float


@dataclass(frozen=True)
class Row:
    """The results of one model, N and method.

    runs: one per seed that the study names. cells: those that exist. estimates: by benchmark, and
    `MACRO` if all benchmarks have the same seeds; then also bootstrap, paired with that of every
    other row that has one. macro_by_seed: macro average of each seed with all benchmarks.
    """

    model: str
    staleness: int
    method: str
    runs: tuple[Run, ...]
    cells: dict[tuple[Run, str], Cell]
    estimates: dict[str, Estimate]
    bootstrap: Bootstrap | None
    macro_by_seed: dict[int, float]

    @property
    def complete_seeds(self) -> int:
        """Number of seeds with all benchmarks."""
        return len(self.macro_by_seed)

    @property
    def seed_sd(self) -> float | None:
        """Population standard deviation of the macro average over seeds; None for fewer than 2."""
        by_seed = list(self.macro_by_seed.values())
        return across_seeds(by_seed)[1] if len(by_seed) > 1 else None

    def total(self, count: str) -> int:
        """Sum a count of the cells, such as `responses` or `truncated`."""
        return sum(getattr(cell, count) for cell in self.cells.values())

    def mean_response_tokens(self) -> float | None:
        """Return the mean over all responses, None without any."""
        if not self.cells:
            return None
        tokens = sum(c.mean_response_tokens * c.responses for c in self.cells.values())
        return tokens / self.total("responses")


class Contrast(NamedTuple):
    """Macro average of `second` minus that of `first`, with its 95 % percentile interval.

    by_seed: the difference of each seed that both have, in order of the seeds.
    """

    first: Row
    second: Row
    difference: float
    low: float
    high: float
    by_seed: tuple[float, ...]

    @property
    def verdict(self) -> str:
        """`resolved` if neither other problems nor the seeds at hand change the sign."""
        if self.low <= 0 <= self.high:
            return "not resolved"
        if len(self.by_seed) < 2:
            return "one seed"
        same_sign = all(difference * self.difference > 0 for difference in self.by_seed)
        return "resolved" if same_sign else "seeds disagree"


def pool(results: Results) -> list[Row]:
    """Read all cells of a study and make its rows, in the order of what is evaluated.

    Raises:
        UserError: a damaged cell, or two cells of a benchmark that hold other problems.
    """
    benchmarks = list(results.study.benchmarks)
    problems: dict[str, tuple[str, ...]] = {}
    rows = []
    for (model, staleness, method), group in groupby(
        results.study.evaluated(), key=lambda run: (run.model, run.staleness, run.method)
    ):
        runs = tuple(group)
        cells = {
            (run, benchmark): cell
            for run in runs
            for benchmark in benchmarks
            if (cell := results.cell(run, benchmark)) is not None
        }
        for (run, benchmark), cell in cells.items():
            ids = tuple(problem.id for problem in cell.problems)
            if set(problems.setdefault(benchmark, ids)) != set(ids):
                raise UserError(
                    f"{results.cell_path(run, benchmark)}: problems: are not those of the other "
                    f"cells of {benchmark}. Make the cells of one of the two anew."
                )
        rows.append(_row(model, staleness, method, runs, cells, problems, benchmarks))
    return rows


def _row(
    model: str,
    staleness: int,
    method: str,
    runs: tuple[Run, ...],
    cells: dict[tuple[Run, str], Cell],
    problems: dict[str, tuple[str, ...]],
    benchmarks: list[str],
) -> Row:
    seeds = {b: [run for run in runs if (run, b) in cells] for b in benchmarks}
    bootstrap = _bootstrap(
        [
            _problem_means([cells[run, b] for run in seeds[b]], problems.get(b, ()))
            for b in benchmarks
        ]
    )
    estimates = {
        b: Estimate(float(bootstrap.mean_J[j]), float(bootstrap.standard_error_J[j]))
        for j, b in enumerate(benchmarks)
        if seeds[b]
    }
    complete = [run for run in runs if all((run, b) in cells for b in benchmarks)]
    has_macro = bool(complete) and all(seeds[b] == complete for b in benchmarks)
    if has_macro:
        estimates[MACRO] = Estimate(bootstrap.macro, bootstrap.macro_standard_error)
    return Row(
        model,
        staleness,
        method,
        runs,
        cells,
        estimates,
        bootstrap=bootstrap if has_macro else None,
        macro_by_seed={
            run.seed: float(np.mean([cells[run, b].pass_at_1 for b in benchmarks]))
            for run in complete
        },
    )


def _bootstrap(problem_means: list[np.ndarray]) -> Bootstrap:
    # The draws depend on a benchmark's position: a missing one keeps its place, and is not shown.
    return cluster_bootstrap([means if means.size else np.zeros(1) for means in problem_means])


def _problem_means(cells: list[Cell], problems: tuple[str, ...]) -> np.ndarray:
    """Average each problem over seeds, in one order for all rows: a problem is a cluster."""
    if not cells:
        return np.empty(0)
    accuracy = [cell.accuracy() for cell in cells]
    return np.array([np.mean([seed[problem] for seed in accuracy]) for problem in problems])


def blocks(rows: list[Row]) -> Iterator[tuple[int, list[Row]]]:
    """Group rows that are compared with each other: one model and one N."""
    for (_, staleness), block in groupby(rows, key=lambda row: (row.model, row.staleness)):
        yield staleness, list(block)


def contrasts(rows: list[Row]) -> Iterator[Contrast]:
    """Compare each pair of methods of a block that both have a macro average."""
    for _, block in blocks(rows):
        for index, second in enumerate(block):
            for first in block[:index]:
                if first.bootstrap is None or second.bootstrap is None:
                    continue
                paired = paired_contrast(second.bootstrap, first.bootstrap)
                by_seed = tuple(
                    macro - first.macro_by_seed[seed]
                    for seed, macro in second.macro_by_seed.items()
                    if seed in first.macro_by_seed
                )
                yield Contrast(
                    first,
                    second,
                    paired.macro_difference,
                    paired.macro_low,
                    paired.macro_high,
                    by_seed,
                )
