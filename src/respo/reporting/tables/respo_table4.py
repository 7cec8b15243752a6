"""Bins of response length: upper bounds and counts by method. ReSPO, Table 4.

Departure from the paper: the CSV file has the accuracy of each bin beside its count.
"""

from itertools import groupby
from pathlib import Path

import numpy as np

from respo.config.study import ResolvedStudy
from respo.reporting import grouping, selection
from respo.reporting.grid import cells
from respo.reporting.layout import Block, Cell, Column, Number, Table, text
from respo.reporting.notes import missing
from respo.reporting.results import Results

PRINTED = ()
SECTIONS = ()
ID = "respo/table4"
NOTES = [
    "Responses at the last evaluated update to all benchmarks, those of all seeds; the bins of a "
    "model and N are shared by its methods, of which one with more seeds weighs more. Q10, `cap` "
    "in figures, holds the responses that were cut at the length limit; Q1 to Q9 hold the others "
    "by length, as many each as can be where equal lengths are never divided.",
    "Upper bound: the most tokens of a response in the bin; an empty bin has none. The CSV file "
    "has each bin's accuracy too, with a standard error over problems, whose responses are kept "
    "together.",
]


def applies(study: ResolvedStudy) -> str | None:
    """Return why the table cannot be made for a study; None if it can."""
    return None if selection.trained(study) else "shows trained runs that are evaluated: none is"


def inputs(study: ResolvedStudy) -> list[Path]:
    """Return the files that it is made from, below the study's folder."""
    paths = cells(study, selection.trained(study), list(study.benchmarks))
    return [path.with_name("scores.parquet") for path in paths]


def make(results: Results) -> Table:
    """Read the scored responses and lay out the table.

    Raises:
        UserError: a damaged file.
    """
    study, runs = results.study, selection.trained(results.study)
    methods = list(dict.fromkeys(run.method for run in runs))
    columns = [
        text("model", None),
        text("N", None),
        text(None, "Model"),
        text(None, "N"),
        text("bin", None),
        text(None, "Bin"),
        Column("upper_bound", "Upper bound", digits=0),
    ]
    for name in methods:
        columns.append(Column(f"{name}_responses", study.methods[name].label, digits=0))
    for name in methods:
        error = f"{name}_accuracy_standard_error"
        columns.append(Column(f"{name}_accuracy", None, error=error))
    blocks = [
        Block(_rows(results, model, staleness, methods), ranked=False)
        for (model, staleness), _ in groupby(runs, key=lambda run: (run.model, run.staleness))
    ]
    notes = [*NOTES, *missing(results, ID, inputs(study), "files of scores")]
    return Table("response length", columns, blocks, notes)


def _rows(results: Results, model: str, staleness: int, methods: list[str]) -> list[list[Cell]]:
    # Imported here: it needs matplotlib, which takes its time to load.
    from respo.reporting import length_bins

    study = results.study
    of_block = [
        group
        for group in grouping.groups(selection.trained(study))
        if (group.model, group.staleness) == (model, staleness)
    ]
    head = [model, str(staleness), study.models[model].label, str(staleness)]
    places = {group.method: place for place, group in enumerate(of_block)}
    names = [[f"Q{q}", f"Q{q}"] for q in range(1, length_bins.BINS)]
    names.append([f"Q{length_bins.BINS}", f"Q{length_bins.BINS} (cap)"])
    responses = length_bins.read(results, of_block)
    if responses is None:
        return [[*head, *name, None, *_absent(methods, places)] for name in names]
    binned = responses.binned()
    there = binned.responses_GQ.sum(axis=1) > 0
    filled = binned.responses_GQ.sum(axis=0) > 0

    def cell(method: str, values: np.ndarray, errors: np.ndarray | None, q: int) -> Cell:
        if method not in places:
            return ""
        if not there[place := places[method]]:
            return None
        return Number(float(values[place, q]), None if errors is None else float(errors[place, q]))

    return [
        [
            *head,
            *name,
            Number(float(responses.upper_Q[q])) if filled[q] else "",
            *(cell(m, binned.responses_GQ, None, q) for m in methods),
            *(cell(m, binned.accuracy_GQ, binned.error_GQ, q) for m in methods),
        ]
        for q, name in enumerate(names)
    ]


def _absent(methods: list[str], places: dict[str, int]) -> list[Cell]:
    """Return the cells of methods without any response: missing, or not of this block."""
    of_kind: list[Cell] = [None if method in places else "" for method in methods]
    return of_kind * 2
