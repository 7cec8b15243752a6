"""What an objective gives to the responses of positive advantage, by bin of log W.

ReSPO, App. E.3. Sums are added up over updates and seeds before they are divided; the spread is
that of the seeds.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from respo.cli import UserError
from respo.config.study import ResolvedStudy
from respo.reporting import grouping, labels, selection
from respo.reporting.grouping import Group
from respo.reporting.layout import Cell, Column, Number, Ours
from respo.reporting.notes import missing, of_some_seeds
from respo.reporting.results import Results
from respo.statistics import Branch, branch_shares, mean_by_batch, sum_by_batch

OTHERWISE = "shows training runs, and the study has none"
SUMS = ("responses", "coefficient_mass", "tokens")
NOTE = (
    "Responses with positive advantage, by log W when the update was made; a bin holds its upper "
    "edge. Sums over updates and seeds are added up before they are divided."
)
SPREAD = "± is the population standard deviation (ddof 0) over seeds; a single seed has none."


@dataclass(frozen=True)
class Sums:
    """Sums by seed, rollout batch and bin, each of shape (S, T, N), of the seeds that are there.

    mean_log_w_ST: mean log W of all responses of a rollout batch; empty where it was not asked for.
    """

    batch_T: np.ndarray
    responses_STN: np.ndarray
    coefficient_mass_STN: np.ndarray
    tokens_STN: np.ndarray
    mean_log_w_ST: np.ndarray

    @property
    def seeds(self) -> int:
        """Number of seeds that are there."""
        return len(self.responses_STN)

    def whole(self) -> tuple[Branch, Branch]:
        """Return the shares of all rollout batches together: of all seeds, and of each."""
        by_seed = [sums_STN.sum(axis=1) for sums_STN in self._all()]
        return branch_shares(*(sums_SN.sum(axis=0) for sums_SN in by_seed)), branch_shares(*by_seed)

    def by_batch(self) -> tuple[Branch, Branch]:
        """Return the shares of each rollout batch: of all seeds, and of each."""
        return branch_shares(*(s.sum(axis=0) for s in self._all())), branch_shares(*self._all())

    def merged(self, low: float, high: float) -> "Sums":
        """Return the sums with the bins of low < log W <= high as the first of two bins."""
        inside_N = np.array([low <= a and b <= high for a, b in bins()])
        responses, mass, tokens = (
            np.stack([s[..., inside_N].sum(axis=-1), s[..., ~inside_N].sum(axis=-1)], axis=-1)
            for s in self._all()
        )
        return Sums(self.batch_T, responses, mass, tokens, self.mean_log_w_ST)

    def _all(self) -> list[np.ndarray]:
        return [self.responses_STN, self.coefficient_mass_STN, self.tokens_STN]


def groups(study: ResolvedStudy) -> list[Group]:
    """Return the groups of runs that the tables show, in the order of the study."""
    return grouping.groups(selection.diagnostic(study))


def applies(study: ResolvedStudy) -> str | None:
    """Return why a table cannot be made for a study; None if it can."""
    return None if study.runs() else OTHERWISE


def inputs(study: ResolvedStudy, *names: str) -> list[Path]:
    """Return the files that a table is made from, below the study's folder."""
    runs = selection.diagnostic(study)
    return [run.folder(Path()) / name for run in runs for name in (*names, "config.yaml")]


def notes(results: Results, id_: str, files: Sequence[Path]) -> list[str]:
    """Write what a reader must know of every such table."""
    several = any(len(group.runs) > 1 for group in groups(results.study))
    about = [NOTE, SPREAD] if several else [NOTE]
    return [
        *about,
        *_shown(results.study),
        *_partial(results),
        *missing(results, id_, files, "files of runs"),
    ]


def _shown(study: ResolvedStudy) -> list[str]:
    """Write why these runs are shown, where there are others."""
    shown = selection.diagnostic(study)
    others = [run for run in study.runs() if run not in shown]
    if not others:
        return []
    values = sorted({run.staleness for run in shown})
    if {run.staleness for run in others}.isdisjoint(values):
        why = (
            f"Shown are the runs of the largest N, {values[-1]}: the more updates learn from the "
            "same responses, the farther log W drifts from 0."
        )
    else:
        why = "Shown are the runs that are trained for these sums alone, and not evaluated."
    return [f"{why} `branches.parquet` in the folder of every other run has its sums too."]


def _partial(results: Results) -> list[str]:
    """Write which groups are of some of their seeds alone."""
    counts = [
        (group, sum(results.branches_path(run).is_file() for run in group.runs))
        for group in groups(results.study)
    ]
    study = results.study
    found = [
        f"{study.models[group.model].label}, N = {group.staleness}, "
        f"{labels.method(study, group)}: {count} of {len(group.runs)} seeds"
        for group, count in counts
        if 0 < count < len(group.runs)
    ]
    return of_some_seeds(found)


def marked(cells: Sequence[Cell], group: Group, sums: Sums | None) -> list[Cell]:
    """Mark the numbers of a row that are of some of its seeds alone."""
    partial = sums is not None and sums.seeds < len(group.runs)
    return [c._replace(partial=partial) if isinstance(c, Number) else c for c in cells]


def bins() -> list[tuple[float, float]]:
    """Return the edges of each bin of log W."""
    # Imported here: torch takes seconds to load.
    from respo.objectives import LOG_W_EDGES

    return list(pairwise(LOG_W_EDGES))


def bin_label(low: float, high: float) -> str:
    """Name a bin."""
    if math.isinf(low):
        return f"≤ {high:g}".replace("-", "−")
    if math.isinf(high):
        return f"> {low:g}".replace("-", "−")
    return f"({low:g}, {high:g}]".replace("-", "−")


def read(results: Results, group: Group, log_w: bool = False) -> Sums | None:
    """Read the sums of a group of runs; None where there is none.

    Args:
        results: the study's folder.
        group: whose runs.
        log_w: read mean log W too.

    Raises:
        UserError: a damaged file, or seeds that differ in their rollout batches.
    """
    count = len(bins())
    parts, means, batches = [], [], []
    for run in group.runs:
        branches = results.branches(run)
        metrics = results.metrics(run, "rollout_batch", "log_ratio_mean") if log_w else {}
        if branches is None or metrics is None:
            continue
        try:
            summed = [
                sum_by_batch(branches["rollout_batch"], branches["bin"], branches[name], count)
                for name in SUMS
            ]
        except ValueError as error:
            raise UserError(f"{results.branches_path(run)}: {error}. Train the run anew.") from None
        parts.append([sum_TN for _, sum_TN in summed])
        batches.append(summed[0][0])
        if log_w:
            means.append(mean_by_batch(metrics["rollout_batch"], metrics["log_ratio_mean"])[1])
    if not parts:
        return None
    if any(not np.array_equal(batch_T, batches[0]) for batch_T in batches):
        raise UserError(
            f"{results.branches_path(group.runs[0])}: rollout_batch: is not that of the other "
            "seeds. Train them anew."
        )
    responses, mass, tokens = (np.stack(of_kind) for of_kind in zip(*parts, strict=True))
    return Sums(batches[0], responses, mass, tokens, np.array(means))


def columns(edges: Sequence[tuple[float, float]], digits: int) -> list[Column]:
    """Make a column per bin."""
    keys = [f"log_w_{low:g}_{high:g}" for low, high in edges]
    return [
        Column(key, bin_label(*edge), digits=digits, error=f"{key}_seed_sd")
        for key, edge in zip(keys, edges, strict=True)
    ]


def ours(found: Mapping[Group, Sums | None], wanted: Mapping[str, Callable[[Sums], Cell]]) -> Ours:
    """Return what finds the value that a paper's is compared with.

    Args:
        found: the sums by group.
        wanted: by the name of the metric, what makes its value of them.
    """

    def find(model: str, method: str, staleness: int, _: str, metric: str) -> Number | None:
        for group, sums in found.items():
            if group[:3] == (model, staleness, method) and sums is not None:
                cell, partial = wanted[metric](sums), sums.seeds < len(group.runs)
                # What varies over seeds is no error of the measurement.
                return Number(cell.value, partial=partial) if isinstance(cell, Number) else None
        return None

    return find


def number(value: float, by_seed: np.ndarray, digits: int | None = None) -> Cell:
    """Return a value with its spread over seeds, nothing where it is not defined.

    digits: after the point, if the row and not the column says how many.
    """
    if np.isnan(value):
        return ""
    known = np.asarray(by_seed)[~np.isnan(by_seed)]
    return Number(float(value), float(known.std()) if known.size > 1 else None, digits)
