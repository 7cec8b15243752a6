"""A status as lines of text: what there is, the grid, and what needs a look."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby, zip_longest
from typing import NamedTuple

from respo.cli import printable
from respo.status.evaluations import Evaluation
from respo.status.overview import Failure, RunStatus, Status
from respo.status.traces import Progress

# So many messages of failed jobs are told, and evaluations that are at work.
FAILURES = EVALUATIONS = 8
# Of the things that are counted, what has been done to them.
COUNTED = {"runs": "runs trained", "cells": "cells evaluated"}
# What a run may be, in this order, and what stands beside the number of such runs.
STAGES = {
    "evaluated": "",
    "trained": "",
    "evaluating": "",
    "training": " (update/of ~time left)",
    "stopped": " (continue when the study is started again)",
    "failed": " (see below)",
    "waiting": "",
}
# Of a terminal: green, bold, yellow, red, faint.
STYLES = {
    "evaluated": "32",
    "evaluating": "1",
    "training": "1",
    "stopped": "33",
    "failed": "31",
    "waiting": "2",
}
MINUTE, HOUR, DAY = 60, 3600, 86400


class Part(NamedTuple):
    """A piece of text with the state that gives its colour."""

    text: str
    state: str


# The runs that differ by their seed.
Cell = Sequence[Part]


class Row(NamedTuple):
    """A line of the grid; where it spans, its one cell is of no column."""

    name: str
    cells: Sequence[Cell]
    spans: bool = False


def lines(status: Status, width: int | None, colour: bool) -> Iterator[str]:
    """Yield the lines.

    Args:
        status: what to show.
        width: of the terminal, in characters; None: no limit.
        colour: mark states with a terminal's colours.
    """
    yield f"Study {status.study}: {status.title}; results in {status.folder}"
    counts = status.counts.items()
    yield ", ".join(f"{COUNTED.get(kind, kind)} {count.done}/{count.of}" for kind, count in counts)
    yield _states(status)
    rows = list(_grid(status))
    if width and _width(rows) > width:
        rows = list(_one_by_one(rows))
    yield from _aligned(rows, colour)
    yield from _seeds(status)
    yield from _evaluations(status, colour)
    yield from _elsewhere(status)
    yield from _failures(status.failures, colour)


def _states(status: Status) -> str:
    stages = Counter(_stage(s) for s in status.runs if not s.run.is_baseline)
    parts = [f"{stages[s]} {s}{note}" for s, note in STAGES.items() if stages[s]]
    return f"Runs: {', '.join(parts) or 'none'}"


def _stage(status: RunStatus) -> str:
    """Say in one word how far a run is: trained until it is evaluated, or if it never is."""
    state, cells = status.training.state, status.cells
    if state != "done":
        return "training" if state == "running" else state
    if any(evaluation.progress.state == "running" for evaluation in status.evaluations):
        return "evaluating"
    return "evaluated" if 0 < cells.of == cells.done else "trained"


def _grid(status: Status) -> Iterator[Row]:
    """Yield the rows of every model: a line for each method, a column for each N."""
    trained = [s for s in status.runs if not s.run.is_baseline]
    columns = sorted({s.run.staleness for s in trained})
    for model, initial in status.initial.items():
        baselines = [s for s in status.runs if s.run.is_baseline and s.run.model == model]
        own = [s for s in trained if s.run.model == model]
        yield Row("", [])
        yield Row(model, [[Part(f"N={n}", "")] for n in columns if own])
        if initial.state != "done":
            yield Row("  initial weights", [[_initial(initial)]], spans=True)
        if baselines:
            yield Row("  as it comes", [_cell(baselines)], spans=True)
        for method in dict.fromkeys(s.run.method for s in own):
            seeds = [
                [s for s in own if (s.run.method, s.run.staleness) == (method, n)] for n in columns
            ]
            yield Row(f"  {method}", [_cell(runs) for runs in seeds])


def _one_by_one(grid: Sequence[Row]) -> Iterator[Row]:
    """Yield the rows of a grid with a line for each cell."""
    columns: Sequence[Cell] = []
    for row in grid:
        if row.spans or not row.name:
            yield row
        elif not row.name.startswith(" "):
            columns = row.cells
            yield Row(row.name, [])
        else:
            for column, cell in zip(columns, row.cells, strict=True):
                if cell:
                    yield Row(f"{row.name} {_plain(column)}", [cell])


def _cell(seeds: Sequence[RunStatus]) -> Cell:
    """Return the text of the runs that differ by their seed: equal neighbours are counted."""
    parts = [(part, len(list(equal))) for part, equal in groupby(map(_part, seeds))]
    return [Part(_times(count, part.text), part.state) for part, count in parts]


def _times(count: int, text: str) -> str:
    if count == 1:
        return text
    return f"{count} x {text}" if text[0].isdigit() else f"{count} {text}"


def _part(status: RunStatus) -> Part:
    """Say how far a run is."""
    stage, cells = _stage(status), status.cells
    if stage in ("trained", "evaluating") and cells.of:
        at = f"{cells.done}/{cells.of} cells"
        # What comes as it is was not trained here.
        is_untrained = status.run.is_baseline and stage == "trained"
        return Part(at if is_untrained else f"{stage} ({at})", stage)
    if status.training.state == "done":
        return Part(stage, stage)
    return _made(status.training)


def _made(progress: Progress) -> Part:
    """Say how far a training is."""
    if progress.state == "running":
        return Part(_at(progress) or "running", "training")
    at = f" {progress.done}/{progress.total}" if progress.total else ""
    return Part(progress.state + at * (progress.state != "waiting"), progress.state)


def _initial(progress: Progress) -> Part:
    """Say how far initial weights are: a warm start that has stopped is not continued."""
    part = _made(progress)
    if progress.state != "stopped":
        return part
    text = f"stopped at {progress.done}/{progress.total} (begins again with the study)"
    return part._replace(text=text)


def _at(progress: Progress) -> str:
    """Say how far a piece of work is and how long it still takes, as far as it has told."""
    left = progress.seconds_left
    at = f"{progress.done}/{progress.total}" if progress.total else ""
    return at if left is None else f"{at} ~{duration(left)}"


def duration(seconds: float) -> str:
    """Return a time in the largest unit that it has two of: `45s`, `12m`, `5.3h`, `2.5d`."""
    if seconds < 2 * MINUTE:
        return f"{seconds:.0f}s"
    if seconds < 2 * HOUR:
        return f"{seconds / MINUTE:.0f}m"
    if seconds < 2 * DAY:
        return f"{seconds / HOUR:.1f}h"
    return f"{seconds / DAY:.1f}d"


def _aligned(rows: Sequence[Row], colour: bool) -> Iterator[str]:
    """Yield rows with their columns below each other."""
    name_width, widths = _widths(rows)
    for row in rows:
        if row.spans:
            yield f"{row.name}: {_painted(row.cells[0], colour)}"
            continue
        texts = [
            _painted(cell, colour) + " " * (width - len(_plain(cell)))
            for cell, width in zip(row.cells, widths, strict=False)
        ]
        yield "  ".join([row.name.ljust(name_width), *texts]).rstrip()


def _width(rows: Sequence[Row]) -> int:
    name_width, widths = _widths(rows)
    return name_width + sum(2 + width for width in widths)


def _widths(rows: Sequence[Row]) -> tuple[int, list[int]]:
    """Return the width of the names, and that of each column."""
    aligned = [row for row in rows if not row.spans]
    columns = zip_longest(*(map(_plain, row.cells) for row in aligned), fillvalue="")
    return max(len(row.name) for row in aligned), [max(map(len, texts)) for texts in columns]


def _plain(cell: Cell) -> str:
    return ", ".join(part.text for part in cell)


def _painted(cell: Cell, colour: bool) -> str:
    return ", ".join(_paint(part.text, part.state, colour) for part in cell)


def _paint(text: str, state: str, colour: bool) -> str:
    return f"\x1b[{STYLES[state]}m{text}\x1b[0m" if colour and state in STYLES else text


def _seeds(status: Status) -> Iterator[str]:
    """Yield what the order in a cell of the grid is, where some hold several runs."""
    seeds: dict[tuple[str, str, int], list[int]] = {}
    for s in status.runs:
        seeds.setdefault((s.run.model, s.run.method, s.run.staleness), []).append(s.run.seed)
    several = {tuple(each) for each in seeds.values() if len(each) > 1}
    if several:
        named = f" {', '.join(map(str, min(several)))}" if len(several) == 1 else ""
        yield f"Runs of a cell: seeds{named} in this order, equal neighbours counted together."


def _evaluations(status: Status, colour: bool) -> Iterator[str]:
    """Yield the cells that are at work, or will continue."""
    begun = [e for s in status.runs for e in s.evaluations if e.progress.state != "failed"]
    begun.sort(key=lambda evaluation: evaluation.progress.state)  # running, stopped
    if begun:
        yield "\nEvaluation (responses/of ~time left):"
    shown = begun[:EVALUATIONS]
    width = max((len(evaluation.cell) for evaluation in shown), default=0)
    for evaluation in shown:
        text, state = _work(evaluation)
        yield f"  {evaluation.cell.ljust(width)}  {_paint(text, state, colour)}"
    if len(begun) > EVALUATIONS:
        yield f"  and {len(begun) - EVALUATIONS} more"


def _work(evaluation: Evaluation) -> Part:
    at, progress = _at(evaluation.progress), evaluation.progress
    if progress.state == "running":
        return Part(f"{evaluation.doing} {at}".rstrip(), "evaluating")
    return Part(f"stopped {evaluation.doing} {at}".rstrip(), "stopped")


def _elsewhere(status: Status) -> Iterator[str]:
    """Yield what runs on other machines, or has ended there without a word."""
    found = {f"{s.run.name}": s.training for s in status.runs} | {
        f"initial/{model}": progress for model, progress in status.initial.items()
    }
    rows = [
        (f"  {name}", f"{progress.state} {progress.message}")
        for name, progress in found.items()
        if progress.message and progress.state != "failed"
    ]
    if rows:
        yield "\nOn other machines:"
        width = max(len(name) for name, _ in rows)
        yield from (f"{name.ljust(width)}  {printable(where)}" for name, where in rows)


def _failures(failures: Sequence[Failure], colour: bool) -> Iterator[str]:
    """Yield the messages, each once with the first of its logs."""
    logs: dict[str, list[str]] = {}
    for failure in failures:
        logs.setdefault(failure.message, []).append(str(failure.log))
    if failures:
        yield "\nFailed, with the last words of the log:"
    for message, (first, *others) in list(logs.items())[:FAILURES]:
        yield f"  {printable(first)}" + (f" and {len(others)} more" if others else "")
        yield f"    {_paint(printable(message), 'failed', colour)}"
    if len(logs) > FAILURES:
        yield f"  and {len(logs) - FAILURES} more messages"
