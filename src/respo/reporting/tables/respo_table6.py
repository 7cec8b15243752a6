"""How the coefficient mass of positive responses moves during training. ReSPO, Table 6."""

import math
from functools import partial
from pathlib import Path

import numpy as np

from respo.config.study import ResolvedStudy
from respo.reporting import branch_sums
from respo.reporting.branch_sums import Sums, marked, number
from respo.reporting.grouping import LEAD, Group
from respo.reporting.layout import Block, Cell, Column, Number, Row, Table
from respo.reporting.results import Results

PRINTED = ("app E.3, table6",)
SECTIONS = ()
ID = "respo/table6"
NOTES = [
    "Share of the coefficient mass |A| c in each bin, by rollout batch: the first, second, fourth "
    "and so on, and the last. Mean log W is that of all responses of the rollout batch, mean "
    "length, in tokens, that of its positive ones.",
]
applies = branch_sums.applies


def inputs(study: ResolvedStudy) -> list[Path]:
    """Return the files that it is made from, below the study's folder."""
    return branch_sums.inputs(study, "branches.parquet", "metrics.parquet")


def make(results: Results) -> Table:
    """Read the sums by bin and lay out the table.

    Raises:
        UserError: a damaged file.
    """
    study, edges = results.study, branch_sums.bins()
    found = {
        group: branch_sums.read(results, group, log_w=True) for group in branch_sums.groups(study)
    }
    columns = [
        *LEAD,
        Column("rollout_batch", "Rollout batch", digits=0),
        *branch_sums.columns(edges, digits=3),
        Column("mean_log_w", "Mean log W", digits=3, error="mean_log_w_seed_sd"),
        Column("mean_tokens", "Mean length", error="mean_tokens_seed_sd"),
    ]
    blocks = [
        Block(_rows(study, group, sums, len(edges)), ranked=False) for group, sums in found.items()
    ]
    notes = [*NOTES, *branch_sums.notes(results, ID, inputs(study))]
    wanted = {
        "mean log W, last rollout batch": partial(_mean_log_w, -1),
        "mean tokens, first rollout batch": partial(_mean_tokens, 0),
        "mean tokens, last rollout batch": partial(_mean_tokens, -1),
        "share of mass, -5 < log W <= -0.5, last rollout batch": partial(_mass, -5.0, -0.5),
        "share of mass, -0.5 < log W <= 0, last rollout batch": partial(_mass, -0.5, 0.0),
    }
    title = "coefficient mass by log W during training"
    return Table(title, columns, blocks, notes, ours=branch_sums.ours(found, wanted))


def _rows(study: ResolvedStudy, group: Group, sums: Sums | None, count: int) -> list[Row]:
    if sums is None:
        return [[*group.lead(study), *[None] * (count + 3)]]
    whole, by_seed = sums.by_batch()
    return [
        [
            *group.lead(study),
            Number(t + 1),
            *marked(
                [
                    *(
                        number(whole.mass_share_XN[t, n], by_seed.mass_share_XN[:, t, n])
                        for n in range(count)
                    ),
                    _mean_log_w(t, sums),
                    _mean_tokens(t, sums),
                ],
                group,
                sums,
            ),
        ]
        for t in shown(sums.batch_T.size)
    ]


def shown(batches: int) -> list[int]:
    """Return the positions of the rollout batches that are shown: 1, 2, 4, ... and the last."""
    powers = [2**power for power in range(int(math.log2(batches)) + 1)]
    return [batch - 1 for batch in dict.fromkeys([*powers, batches])]


def _mean_log_w(t: int, sums: Sums) -> Cell:
    return number(np.mean(sums.mean_log_w_ST[:, t]), sums.mean_log_w_ST[:, t])


def _mean_tokens(t: int, sums: Sums) -> Cell:
    whole, by_seed = sums.by_batch()
    return number(whole.branch_mean_tokens_X[t], by_seed.branch_mean_tokens_X[:, t])


def _mass(low: float, high: float, sums: Sums) -> Cell:
    """Return the share of mass between two edges in the last rollout batch, in percent."""
    share = sums.merged(low, high).by_batch()[0].mass_share_XN[-1, 0]
    return Number(100 * float(share))
