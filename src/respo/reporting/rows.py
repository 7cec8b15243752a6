"""The rows of a table: (model, N, method), pooled over seeds, with errors from one bootstrap."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from respo.cli import UserError
from respo.config import Run
from respo.reporting.results import Cell, Results
from respo.statistics import Bootstrap, across_seeds, cluster_bootstraps

MACRO = "macro"


class Estimate(NamedTuple):
    """A share in [0, 1] and its cluster-bootstrap standard error."""

    value: float
    error: float


@dataclass(frozen=True)
class Row:
    """The results of one model, N and method.

    runs: one per seed that the study names. cells: those that exist. estimates: by benchmark, and
    `MACRO` if all benchmarks have the same seeds; then also bootstrap, paired with that of every
    other row that has one. macro_by_seed: macro average of each seed with all benchmarks. tries: k
    of pass@k by benchmark, 1 for those that it leaves out.
    """

    model: str
    staleness: int
    method: str
    runs: tuple[Run, ...]
    cells: dict[tuple[Run, str], Cell]
    estimates: dict[str, Estimate]
    bootstrap: Bootstrap | None
    macro_by_seed: dict[int, float]
    tries: Mapping[str, int]

    @property
    def complete_seeds(self) -> int:
        """Number of seeds with all benchmarks."""
        return len(self.macro_by_seed)

    @property
    def seed_sd(self) -> float | None:
        """Population standard deviation of the macro average over seeds; None for fewer than 2."""
        by_seed = list(self.macro_by_seed.values())
        return across_seeds(by_seed)[1] if len(by_seed) > 1 else None

    def mean_of(self, benchmarks: Sequence[str]) -> Estimate | None:
        """Return an estimate by name, or the mean of those of several benchmarks.

        None where one of them, or, for several, any benchmark of the row, is missing.
        """
        if len(benchmarks) == 1:
            return self.estimates.get(benchmarks[0])
        if self.bootstrap is None or not set(benchmarks) <= self.estimates.keys():
            return None
        places = [list(self.estimates).index(name) for name in benchmarks]
        replicates_R = self.bootstrap.replicates_RJ[:, places].mean(axis=1)
        value = float(self.bootstrap.mean_J[places].mean())
        return Estimate(value, float(replicates_R.std(ddof=1)))

    def seeds(self, name: str) -> int:
        """Return the number of seeds that an estimate is of."""
        if name == MACRO:
            return self.complete_seeds
        return sum(benchmark == name for _, benchmark in self.cells)

    def is_partial(self, name: str) -> bool:
        """Return whether an estimate is of fewer seeds than the study names."""
        return self.seeds(name) < len(self.runs)

    def problems(self, benchmark: str) -> int:
        """Return the number of a benchmark's problems, 0 without any cell."""
        return next((len(c.problems) for (_, b), c in self.cells.items() if b == benchmark), 0)

    def counts(self, benchmark: str, seeds: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return correct samples and samples of a benchmark's problems, shape (seeds, problems).

        The order of the problems is that of their names. Of pass@k, whose noise is not known, the
        estimate counts as one sample.
        """
        by_seed = {run.seed: cell for (run, b), cell in self.cells.items() if b == benchmark}
        if (k := self.tries.get(benchmark, 1)) > 1:
            solved = [sorted(by_seed[seed].solved(k).items()) for seed in seeds]
            solved_SP = np.array([[share for _, share in problems] for problems in solved])
            return solved_SP, np.ones(solved_SP.shape)
        of_seed = [sorted(by_seed[seed].problems, key=lambda p: p.id) for seed in seeds]
        correct_SP = np.array([[p.correct for p in problems] for problems in of_seed])
        return correct_SP, np.array([[p.samples for p in problems] for problems in of_seed])

    def total(self, count: str) -> int:
        """Sum a count of the cells, such as `responses` or `truncated`."""
        return sum(getattr(cell, count) for cell in self.cells.values())

    def mean_response_tokens(self) -> float | None:
        """Return the mean over all responses, None without any."""
        if not self.cells:
            return None
        tokens = sum(c.mean_response_tokens * c.responses for c in self.cells.values())
        return tokens / self.total("responses")


def pool(
    results: Results,
    benchmarks: Sequence[str] | None = None,
    tries: Mapping[str, int] | None = None,
    runs: Sequence[Run] | None = None,
) -> list[Row]:
    """Read cells of a study and make their rows, in the order of what is evaluated.

    Args:
        results: the study's folder.
        benchmarks: some of its benchmarks; all if left out.
        tries: k of pass@k by benchmark; 1, which is avg@K, if left out.
        runs: some of what is evaluated; all if left out.

    Raises:
        UserError: a damaged cell, two cells of a benchmark that hold other problems, or one with
            fewer samples than tries.
    """
    names, tries = list(benchmarks or results.study.benchmarks), tries or {}
    problems: dict[str, tuple[str, ...]] = {}
    groups = []
    for key, group in groupby(
        results.study.evaluated() if runs is None else runs,
        key=lambda run: (run.model, run.staleness, run.method),
    ):
        in_group = tuple(group)
        cells = {
            (run, benchmark): cell
            for run in in_group
            for benchmark in names
            if (cell := results.cell(run, benchmark)) is not None
        }
        for (run, benchmark), cell in cells.items():
            _check(results.cell_path(run, benchmark), benchmark, cell, problems, tries)
        groups.append((key, in_group, cells))
    means = [
        [
            _problem_means(
                [cells[run, b] for run in in_group if (run, b) in cells],
                problems.get(b, ()),
                tries.get(b, 1),
            )
            for b in names
        ]
        for _, in_group, cells in groups
    ]
    # The draws depend on a benchmark's position: a missing one keeps its place, and is not shown.
    filled = [[mean_P if mean_P.size else np.zeros(1) for mean_P in row] for row in means]
    bootstraps = cluster_bootstraps(filled) if filled else []
    return [
        _row(*key, in_group, cells, means_J, names, tries, bootstrap)
        for (key, in_group, cells), means_J, bootstrap in zip(
            groups, means, bootstraps, strict=True
        )
    ]


def _check(
    path: Path,
    benchmark: str,
    cell: Cell,
    problems: dict[str, tuple[str, ...]],
    tries: Mapping[str, int],
) -> None:
    ids = tuple(problem.id for problem in cell.problems)
    if set(problems.setdefault(benchmark, ids)) != set(ids):
        raise UserError(
            f"{path}: problems: are not those of the other cells of {benchmark}. Make the cells of "
            "one of the two anew."
        )
    k = tries.get(benchmark, 1)
    if any(problem.samples < k for problem in cell.problems):
        raise UserError(
            f"{path}: problems: pass@{k} needs {k} samples of each problem. Make the cell anew."
        )


def _row(
    model: str,
    staleness: int,
    method: str,
    runs: tuple[Run, ...],
    cells: dict[tuple[Run, str], Cell],
    means_J: list[np.ndarray],
    benchmarks: list[str],
    tries: Mapping[str, int],
    bootstrap: Bootstrap,
) -> Row:
    estimates = {
        b: Estimate(float(bootstrap.mean_J[j]), float(bootstrap.standard_error_J[j]))
        for j, b in enumerate(benchmarks)
        if means_J[j].size
    }
    complete = [run for run in runs if all((run, b) in cells for b in benchmarks)]
    has_macro = bool(complete) and all(
        [run for run in runs if (run, b) in cells] == complete for b in benchmarks
    )
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
            run.seed: float(
                np.mean([_mean(cells[run, b].solved(tries.get(b, 1))) for b in benchmarks])
            )
            for run in complete
        },
        tries=tries,
    )


def _mean(by_problem: Mapping[str, float]) -> float:
    return float(np.mean(list(by_problem.values())))


def _problem_means(cells: list[Cell], problems: tuple[str, ...], k: int) -> np.ndarray:
    """Average each problem over seeds, in one order for all rows: a problem is a cluster."""
    if not cells:
        return np.empty(0)
    seeds = [cell.solved(k) for cell in cells]
    return np.array([np.mean([seed[problem] for seed in seeds]) for problem in problems])


def blocks(rows: Sequence[Row]) -> Iterator[tuple[int, list[Row]]]:
    """Group rows that are compared with each other: one model and one N."""
    for (_, staleness), block in groupby(rows, key=lambda row: (row.model, row.staleness)):
        yield staleness, list(block)
