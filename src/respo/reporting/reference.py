"""The numbers that the papers print, and how ours compare.

`config/reference/PAPER.csv` has one row per number, with the names that this project has for model,
method and benchmark. Values are as printed: shares in percent.
"""

import csv
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from respo.cli import UserError
from respo.config.study import BASELINE, ResolvedStudy
from respo.reporting import labels
from respo.reporting.layout import PARTIAL, Cell, Column, Number, Ours, Section, text
from respo.reporting.rows import MACRO

COLUMNS = (
    "paper", "source", "model", "method", "N", "benchmark", "metric", "value", "sd", "note",
)  # fmt: skip
# What stands in place of a benchmark where a number is of the training.
TRAINING = "training"
Z = 1.96

TEXT = (
    "The paper's value, ours and its standard error, and ours minus the paper's, in percent and "
    "with the paper's digits. Within error: the difference is at most 1.96 standard errors of "
    "ours; the paper's own error, mostly unknown, would add to it. The errors are over problems: "
    "another training run may differ by more."
)
# Of numbers of the training.
TRAINING_TEXT = (
    "The paper's value, ours, and ours minus the paper's, with the paper's digits: shares and "
    "scores in percent, lengths in tokens. They have no error to compare with: another training "
    "run may differ by any amount."
)
SD_TEXT = " ± of the paper's value is a standard deviation, of what its note says."
SEEDS_TEXT = f" Ours are of the seeds that are there; {PARTIAL}: some are missing."
# Metrics whose name in the file is no prose.
METRICS = {"late_mean": "late score", "early_peak": "early peak"}


class Printed(NamedTuple):
    """A number of a paper; N is 0 for models without training.

    sd: a standard deviation, if any. digits: after the point.
    """

    paper: str
    source: str
    model: str
    method: str
    staleness: int
    benchmark: str
    metric: str
    value: float
    sd: float | None
    note: str
    digits: int = 1

    @property
    def key(self) -> tuple[str, str, int, str, str]:
        """What it is the value of."""
        return self.model, self.method, self.staleness, self.benchmark, self.metric


def read(folder: Path, paper: str) -> list[Printed]:
    """Read the numbers of a paper.

    Args:
        folder: `config/reference`; names are those of the folders beside it. Where there are none,
            as in a pack, any name will do.
        paper: name of the file.

    Raises:
        UserError: a missing file, other columns, a name that is no file of `config`, a value that
            is no number, or a number that stands twice.
    """
    path = folder / f"{paper}.csv"
    try:
        with path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.reader(file, strict=True))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; --reference takes config/reference") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a CSV file ({error})") from None
    if not lines or tuple(lines[0]) != COLUMNS:
        raise UserError(f"{path}: line 1: the columns must be {','.join(COLUMNS)}")
    further = {"model": set(), "method": {BASELINE}, "benchmark": {MACRO, TRAINING}}
    known = {
        kind: _names(beside) | names
        for kind, names in further.items()
        if (beside := folder.parent / f"{kind}s").is_dir()
    }
    seen: dict[tuple[object, ...], int] = {}
    numbers = []
    for index, line in enumerate(lines[1:], start=2):
        where = f"{path}: line {index}"
        printed = _printed(line, where, paper, known)
        first = seen.setdefault((printed.source, *printed.key), index)
        if first != index:
            raise UserError(f"{where}: the number of line {first} stands twice; keep one")
        numbers.append(printed)
    return numbers


def _names(folder: Path) -> set[str]:
    return {path.stem for path in folder.glob("[!.]*.yaml")}


def _printed(line: list[str], where: str, paper: str, known: dict[str, set[str]]) -> Printed:
    if len(line) != len(COLUMNS):
        raise UserError(f"{where}: has {len(line)} fields, not {len(COLUMNS)}")
    row = dict(zip(COLUMNS, line, strict=True))
    if row["paper"] != paper:
        raise UserError(f"{where}: paper: is {row['paper']!r}, but the file is that of {paper!r}")
    parts = {"model": [row["model"]], "method": [row["method"]]}
    for kind, names in (parts | {"benchmark": row["benchmark"].split("+")}).items():
        for name in names:
            if kind in known and name not in known[kind]:
                raise UserError(f"{where}: {kind}: {name!r} is not a file of config/{kind}s")
    if not row["metric"] or not row["source"]:
        raise UserError(f"{where}: source, metric: must not be empty")
    return Printed(
        paper,
        row["source"],
        row["model"],
        row["method"],
        int(_number(row["N"], f"{where}: N")),
        row["benchmark"],
        row["metric"],
        _number(row["value"], f"{where}: value"),
        _number(row["sd"], f"{where}: sd") if row["sd"] else None,
        row["note"],
        digits=len(row["value"].partition(".")[2]),
    )


def _number(value: str, where: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise UserError(f"{where}: {value!r} is not a number")
    return number


def of_study(
    printed: Iterable[Printed], study: ResolvedStudy, sources: Sequence[str]
) -> list[Printed]:
    """Return those of some tables of the paper that are of a run of the study."""
    runs = {(run.model, run.method, run.staleness) for run in [*study.evaluated(), *study.runs()]}
    return [number for number in printed if number.source in sources and number.key[:3] in runs]


HEAD = [
    text("source", None),
    text("model", None),
    text("method", None),
    text("N", None),
    text("benchmark", None),
    text(None, "Model"),
    text(None, "N"),
    text(None, "Method"),
    text(None, "Benchmark"),
    text("metric", None),
    text(None, "Metric"),
    Column("paper", "Paper", error="paper_sd"),
    Column("ours", "Ours"),
    Column("standard_error", "Error"),
    Column("difference", "Difference", sign=True),
    text("within_error", "Within error"),
    text("note", None),
    text(None, "Note"),
]


def section(printed: Sequence[Printed], study: ResolvedStudy, ours: Ours) -> Section:
    """Lay out the comparison of a table's values with the paper's."""
    remarks = list(dict.fromkeys(number.note for number in printed if number.note))
    # As many as the most exact value of the same kind: some lost their zeros.
    digits: dict[tuple[str, str], int] = {}
    for number in printed:
        kind = number.source, number.metric
        digits[kind] = max(number.digits, digits.get(kind, 0))
    lines = [
        _line(number, study, ours(*number.key), digits[number.source, number.metric], remarks)
        for number in printed
    ]
    of_training = all(number.benchmark == TRAINING for number in printed)
    return Section(
        "reference",
        "Comparison with the paper",
        (TRAINING_TEXT if of_training else TEXT)
        + (SD_TEXT if any(number.sd is not None for number in printed) else "")
        + SEEDS_TEXT,
        [_without_head(column) if of_training else column for column in HEAD],
        lines,
        lines,
        notes=[f"{index}: {remark}" for index, remark in enumerate(remarks, start=1)],
    )


def _without_head(column: Column) -> Column:
    """Leave a column out that is empty, or the same everywhere, for numbers of the training."""
    empty = column.key in ("standard_error", "within_error") or column.label == "Benchmark"
    return replace(column, label=None) if empty else column


def _line(
    number: Printed, study: ResolvedStudy, found: Number | None, digits: int, remarks: list[str]
) -> list[Cell]:
    difference = found and Number(found.value - number.value, digits=digits)
    error = found.error if found else None
    within = ""
    if found and error is not None:
        within = "yes" if abs(found.value - number.value) <= Z * error else "no"
    return [
        number.source,
        number.model,
        number.method,
        str(number.staleness),
        number.benchmark,
        study.models[number.model].label,
        labels.staleness(number),
        labels.method(study, number),
        _benchmark(study, number.benchmark),
        number.metric,
        _metric(number.metric),
        Number(number.value, number.sd, digits),
        found and Number(found.value, digits=digits, partial=found.partial),
        "" if error is None else Number(error, digits=digits),
        difference,
        within,
        number.note,
        str(remarks.index(number.note) + 1) if number.note else "",
    ]


def _metric(name: str) -> str:
    """Name a metric as prose does, with proper signs."""
    shown = METRICS.get(name, name).replace("<=", "≤")
    return re.sub(r"-(?=\d)", "−", shown)


def _benchmark(study: ResolvedStudy, names: str) -> str:
    own = {MACRO: "Macro average", TRAINING: "(training)"}
    shown = [own[n] if n in own else _label(study, n) for n in names.split("+")]
    return ", ".join(shown)


def _label(study: ResolvedStudy, name: str) -> str:
    """Name a benchmark, which a study of the same models and methods may not have."""
    return study.benchmarks[name].label if name in study.benchmarks else name
