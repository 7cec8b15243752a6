"""The grid and its cells: estimates by row and benchmark, and what each cell was made from.

Numbers are printed here, as in the tables, and not by the page.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from respo.config import Run
from respo.reporting import labels, notes
from respo.reporting.grid import number
from respo.reporting.layout import MISSING, Block, Rank, percent, ranks
from respo.reporting.page import samples
from respo.reporting.page.make import below
from respo.reporting.results import Cell, Results
from respo.reporting.rows import MACRO, Estimate, Row, blocks, pool

PERCENT = percent("share", None, ranked=True)
COUNTS = {
    "responses": "responses",
    "unparsed": "no readable answer",
    "timed_out": "out of time when checked",
    "failed": "failed when checked",
    "truncated": "cut at the limit",
}


def collect(results: Results) -> dict[str, Any]:
    """Read the cells at the last evaluated update.

    Returns:
        `rows` with their estimates, printed in percent and ranked within a model and N (1 and 2 for
        best and second), and as shares in [0, 1] to sort by. `cells` by address MODEL/METHOD/N…/
        seed…/BENCHMARK: what is there, or only the target that makes it. `problems` by benchmark
        and id: prompt and gold answer of those that a response is shown of. `marks`: what bold,
        underlined and marked values are.
    """
    study, rows = results.study, pool(results)
    problems: dict[str, dict[str, Any]] = {name: {} for name in study.benchmarks}
    cells = {
        f"{run.name}/{benchmark}": _cell(results, run, benchmark, row, problems[benchmark])
        for row in rows
        for run in row.runs
        for benchmark in study.benchmarks
    }
    compared = [block for _, block in blocks(rows)]
    return {
        "rows": _rows(results, rows),
        "cells": cells,
        "problems": problems,
        "marks": [*notes.ranking(compared, "a model and N"), *notes.partial(study, rows)],
    }


def _rows(results: Results, rows: list[Row]) -> list[dict[str, Any]]:
    study = results.study
    names = [*study.benchmarks, MACRO]
    shown = []
    for staleness, block in blocks(rows):
        numbers = [[number(row, name) for name in names] for row in block]
        places = ranks(Block(numbers, ranked=staleness != 1), [PERCENT] * len(names))
        for row, rank in zip(block, places, strict=True):
            shown.append(
                {
                    "model": row.model,
                    "method": row.method,
                    "N": row.staleness,
                    "label": labels.method(study, row),
                    "seeds": [run.seed for run in row.runs],
                    "complete": row.complete_seeds,
                    "seed_sd": _share(row.seed_sd),
                    "macro_by_seed": {k: PERCENT.show(v) for k, v in row.macro_by_seed.items()},
                    "estimates": {
                        name: _estimate(row, name, row.estimates.get(name), place)
                        for name, place in zip(names, rank, strict=True)
                    },
                    "counts": {name: _counts(_cells(row, name)) for name in study.benchmarks},
                }
            )
    return shown


def _cells(row: Row, benchmark: str) -> list[Cell]:
    return [cell for (_, name), cell in row.cells.items() if name == benchmark]


def _share(value: float | None) -> dict[str, Any] | None:
    return None if value is None else {"value": value, "text": PERCENT.show(value)}


def _estimate(row: Row, name: str, found: Estimate | None, rank: Rank) -> dict[str, Any] | None:
    """Print an estimate; `partial` says how many seeds it is of, where some are missing."""
    if found is None:
        return None
    seeds = f"{row.seeds(name)} of {len(row.runs)} seeds"
    return {
        "value": found.value,
        "text": PERCENT.show(found.value),
        "error": PERCENT.show(found.error),
        "rank": rank.value,
        "partial": seeds if row.is_partial(name) else None,
    }


def _cell(
    results: Results, run: Run, benchmark: str, row: Row, problems: dict[str, Any]
) -> dict[str, Any]:
    path = results.cell_path(run, benchmark)
    target = {"target": below(results, path)}
    cell = row.cells.get((run, benchmark))
    return target if cell is None else target | _contents(cell) | _responses(path, problems)


def _contents(cell: Cell) -> dict[str, Any]:
    return {
        "update": cell.update,
        "value": PERCENT.show(cell.pass_at_1),
        "problems": len(cell.problems),
        "counts": _counts([cell]),
        "made_from": cell.made_from,
    }


def _counts(cells: Sequence[Cell]) -> list[tuple[str, str]]:
    """Count the responses of some cells together: names and numbers; empty without any."""
    if not cells:
        return []
    total = {name: sum(getattr(cell, name) for cell in cells) for name in COUNTS}
    tokens = sum(cell.mean_response_tokens * cell.responses for cell in cells)
    votes = [cell.majority for cell in cells if cell.majority is not None]
    return [
        *((label, f"{total[name]:,}") for name, label in COUNTS.items()),
        ("mean length", f"{tokens / total['responses']:,.1f} tokens"),
        (
            "majority vote",
            f"{PERCENT.show(sum(votes) / len(votes))}% right" if votes else MISSING,
        ),
    ]


def _responses(path: Path, problems: dict[str, Any]) -> dict[str, Any]:
    """Show some responses, where they are kept."""
    chosen = samples.choose(path.with_name("scores.parquet"))
    shown = samples.read(path.with_name("generations.parquet"), chosen)
    for sample in shown:
        problem = {name: sample.pop(name) for name in ("prompt", "answer")}
        problems.setdefault(sample["problem"], problem)
    return {"samples": shown}
