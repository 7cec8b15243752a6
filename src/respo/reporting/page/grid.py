"""The grid and its cells: estimates by row and benchmark, and what each cell was made from."""

from pathlib import Path
from typing import Any

from respo.config import Run
from respo.reporting import labels
from respo.reporting.layout import Block, Number, percent, ranks
from respo.reporting.notes import COUNTS
from respo.reporting.page import samples
from respo.reporting.results import Cell, Results
from respo.reporting.rows import MACRO, Row, blocks, pool


def collect(results: Results) -> dict[str, Any]:
    """Read the cells at the last evaluated update.

    Returns:
        `rows` with estimates as [value, error, rank]: shares in [0, 1], ranks 1 and 2 for best and
        second of a model and N, as printed in percent. `cells` by address MODEL/METHOD/N…/seed…/
        BENCHMARK: what is there, or only the target that makes it. `problems` by benchmark and id:
        prompt and gold answer of those that a response is shown of.
    """
    study, rows = results.study, pool(results)
    problems: dict[str, dict[str, Any]] = {name: {} for name in study.benchmarks}
    cells = {
        f"{run.name}/{benchmark}": _cell(results, run, benchmark, row, problems[benchmark])
        for row in rows
        for run in row.runs
        for benchmark in study.benchmarks
    }
    return {"rows": _rows(results, rows), "cells": cells, "problems": problems}


def _rows(results: Results, rows: list[Row]) -> list[dict[str, Any]]:
    study = results.study
    names = [*study.benchmarks, MACRO]
    columns = [percent(name, name, ranked=True) for name in names]
    shown = []
    for staleness, block in blocks(rows):
        found = [[row.estimates.get(name) for name in names] for row in block]
        numbers = [[None if e is None else Number(*e) for e in line] for line in found]
        places = ranks(Block(numbers, ranked=staleness != 1), columns)
        for row, line, rank in zip(block, found, places, strict=True):
            shown.append(
                {
                    "model": row.model,
                    "method": row.method,
                    "N": row.staleness,
                    "label": labels.method(study, row),
                    "seeds": [run.seed for run in row.runs],
                    "complete": row.complete_seeds,
                    "seed_sd": row.seed_sd,
                    "macro_by_seed": {str(k): v for k, v in row.macro_by_seed.items()},
                    "estimates": {
                        name: None if e is None else [e.value, e.error, place.value]
                        for name, e, place in zip(names, line, rank, strict=True)
                    },
                }
            )
    return shown


def _cell(
    results: Results, run: Run, benchmark: str, row: Row, problems: dict[str, Any]
) -> dict[str, Any]:
    target = {"target": results.cell_path(run, benchmark).as_posix()}
    cell = row.cells.get((run, benchmark))
    if cell is None:
        return target
    return target | _contents(cell) | _responses(results.cell_path(run, benchmark), problems)


def _contents(cell: Cell) -> dict[str, Any]:
    return {
        "update": cell.update,
        "value": cell.pass_at_1,
        "problems": len(cell.problems),
        **{count: getattr(cell, count) for count in ("responses", *COUNTS)},
        "mean_response_tokens": cell.mean_response_tokens,
        "majority": cell.majority,
        "made_from": cell.made_from,
    }


def _responses(path: Path, problems: dict[str, Any]) -> dict[str, Any]:
    """Show some responses, where they are kept."""
    chosen = samples.choose(path.with_name("scores.parquet"))
    shown = samples.read(path.with_name("generations.parquet"), chosen)
    for sample in shown:
        problem = {name: sample.pop(name) for name in ("prompt", "answer")}
        problems.setdefault(sample["problem"], problem)
    return {"samples": shown}
