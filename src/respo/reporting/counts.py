"""What stands behind each cell: its responses, those without a verdict, and the majority vote."""

from collections.abc import Sequence

from respo.reporting import labels
from respo.reporting.layout import Cell, Column, Number, Section, percent, text
from respo.reporting.results import Results
from respo.reporting.rows import Row

TEXT = (
    "Responses by cell: without a readable answer, out of time, failed (all three count as wrong), "
    "cut at the length limit; and the accuracy of the majority vote over boxed answers or letters, "
    "ties to the one that came first. Here are the cells with a response that was not read; the "
    "CSV file of counts has all of them."
)
UNREAD = ("unparsed", "timed_out", "failed")
COLUMNS = [
    text("model", None),
    text("N", None),
    text("method", None),
    text("benchmark", None),
    text(None, "Model"),
    text(None, "N"),
    text(None, "Method"),
    text(None, "Benchmark"),
    Column("seed", "Seed", digits=0),
    Column("responses", "Responses", digits=0),
    Column("unparsed", "Unparsed", digits=0),
    Column("timed_out", "Timed out", digits=0),
    Column("failed", "Failed", digits=0),
    Column("truncated", "Cut", digits=0),
    Column("mean_response_tokens", "Tokens"),
    percent("pass_at_1", "pass@1"),
    percent("majority", "Majority"),
]


def section(results: Results, rows: Sequence[Row]) -> Section:
    """Lay out a row per cell, of which a page shows those with a response that was not read."""
    study = results.study
    lines: list[list[Cell]] = []
    shown: list[list[Cell]] = []
    for row in rows:
        for (run, benchmark), cell in row.cells.items():
            numbers = [
                run.seed,
                cell.responses,
                *(getattr(cell, count) for count in UNREAD),
                cell.truncated,
                cell.mean_response_tokens,
                cell.pass_at_1,
            ]
            line: list[Cell] = [
                row.model,
                str(row.staleness),
                row.method,
                benchmark,
                study.models[row.model].label,
                labels.staleness(row),
                labels.method(study, row),
                study.benchmarks[benchmark].label,
                *(Number(value) for value in numbers),
                None if cell.majority is None else Number(cell.majority),
            ]
            lines.append(line)
            if any(getattr(cell, count) for count in UNREAD):
                shown.append(line)
    return Section("counts", "Responses behind the cells", TEXT, COLUMNS, lines, shown)
