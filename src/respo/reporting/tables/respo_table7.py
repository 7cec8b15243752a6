"""Length of positive responses by log W. ReSPO, Table 7."""

import math
from functools import partial
from pathlib import Path

from respo.config.study import ResolvedStudy
from respo.reporting import branch_sums
from respo.reporting.branch_sums import Sums, marked, number
from respo.reporting.grouping import LEAD
from respo.reporting.layout import Block, Cell, Number, Table, text
from respo.reporting.results import Results

PRINTED = ("app E.3, table7",)
SECTIONS = ()
ID = "respo/table7"
# Beside the bins: all responses that have become clearly less likely.
TAIL = (-math.inf, -0.5)
NOTES = [
    "Responses: their number, all seeds together. Length, in tokens: the mean of theirs; ratio: by "
    "that of all positive responses of the row's runs. The last column is not a bin of its own: "
    "all with log W ≤ −0.5.",
]
QUANTITIES = {"responses": "responses_XN", "length": "mean_tokens_XN", "ratio": "length_ratio_XN"}
DIGITS = {"responses": 0, "length": 1, "ratio": 2}
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
    columns = [*LEAD, text("quantity", "Quantity"), *branch_sums.columns([*edges, TAIL], digits=2)]
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
        "responses, log W <= -0.5": partial(value, "responses"),
        "mean tokens, log W <= -0.5": partial(value, "length"),
        "length ratio, log W <= -0.5": partial(value, "ratio"),
    }
    ours = branch_sums.ours(found, wanted)
    return Table("response length by log W", columns, blocks, notes, ours=ours)


def _cells(sums: Sums | None, name: str, count: int) -> list[Cell]:
    if sums is None:
        return [None] * (count + 1)
    whole, by_seed = (getattr(branch, QUANTITIES[name]) for branch in sums.whole())
    if name == "responses":
        tail = sums.merged(*TAIL).whole()[0].responses_XN[0]
        return [Number(int(responses), digits=0) for responses in [*whole.tolist(), tail]]
    cells = (number(whole[n], by_seed[:, n], DIGITS[name]) for n in range(count))
    return [*cells, value(name, sums)]


def value(name: str, sums: Sums) -> Cell:
    """Return a quantity of the responses with log W at most -0.5."""
    whole, by_seed = (getattr(b, QUANTITIES[name]) for b in sums.merged(*TAIL).whole())
    if name == "responses":  # a sum, of which the seeds have no spread
        return Number(float(whole[0]), digits=DIGITS[name])
    return number(whole[0], by_seed[:, 0], DIGITS[name])
