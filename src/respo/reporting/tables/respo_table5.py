"""Where the coefficient mass of positive responses goes, by log W. ReSPO, Table 5."""

import math
from functools import partial
from pathlib import Path

from respo.config.study import ResolvedStudy
from respo.reporting import branch_sums
from respo.reporting.branch_sums import Sums, marked, number
from respo.reporting.grouping import LEAD
from respo.reporting.layout import Block, Cell, Number, Table, text
from respo.reporting.results import Results

PRINTED = ("app E.3, table5",)
SECTIONS = ()
ID = "respo/table5"
# Beside the bins: all responses that have become less likely by more than a factor e.
TAIL = (-math.inf, -1.0)
NOTES = [
    "Share of the responses; mass: share of the sum of |A| c; amplification: mass by share, above "
    "1 where a response gets more than the mean one. The last column is not a bin of its own: all "
    "with log W ≤ −1.",
]
QUANTITIES = {"share": "share_XN", "mass": "mass_share_XN", "amplification": "amplification_XN"}
applies = branch_sums.applies


def inputs(study: ResolvedStudy) -> list[Path]:
    """Return the files that it is made from, below the study's folder."""
    return branch_sums.inputs(study, "branches.parquet")


def make(results: Results) -> Table:
    """Read the sums by bin and lay out the table.

    Raises:
        UserError: a damaged file.
    """
    study, edges = results.study, branch_sums.bins()
    found = {group: branch_sums.read(results, group) for group in branch_sums.groups(study)}
    columns = [*LEAD, text("quantity", "Quantity"), *branch_sums.columns([*edges, TAIL], digits=3)]
    blocks = [
        Block(
            [
                [*group.lead(study), name, *marked(_cells(sums, name, len(edges)), group, sums)]
                for name in QUANTITIES
            ],
            ranked=False,
        )
        for group, sums in found.items()
    ]
    notes = [*NOTES, *branch_sums.notes(results, ID, inputs(study))]
    wanted = {
        "share of responses, log W <= -1": partial(_percent, "share", TAIL),
        "share of mass, log W <= -1": partial(_percent, "mass", TAIL),
        "amplification, log W <= -1": partial(value, "amplification", TAIL),
        "amplification, -5 < log W <= -2": partial(value, "amplification", (-5.0, -2.0)),
    }
    ours = branch_sums.ours(found, wanted)
    return Table("coefficient mass by log W", columns, blocks, notes, ours=ours)


def _cells(sums: Sums | None, name: str, count: int) -> list[Cell]:
    if sums is None:
        return [None] * (count + 1)
    whole, by_seed = (getattr(branch, QUANTITIES[name]) for branch in sums.whole())
    return [*(number(whole[n], by_seed[:, n]) for n in range(count)), value(name, TAIL, sums)]


def value(name: str, edge: tuple[float, float], sums: Sums) -> Cell:
    """Return a quantity of the responses between two edges."""
    whole, by_seed = (getattr(b, QUANTITIES[name]) for b in sums.merged(*edge).whole())
    return number(whole[0], by_seed[:, 0])


def _percent(name: str, edge: tuple[float, float], sums: Sums) -> Cell:
    cell = value(name, edge, sums)
    return Number(100 * cell.value) if isinstance(cell, Number) else cell
