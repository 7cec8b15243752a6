"""A table as data, and its forms: CSV, Markdown, HTML and LaTeX.

A table's maker says what stands where; how it is printed, ranked and marked is decided here alone.
"""

import csv
import io
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import groupby
from typing import NamedTuple

from respo.reporting.text import (
    html,
    html_page,
    html_table,
    latex,
    latex_table,
    markdown_table,
    math_number,
    number,
    plain_latex,
)

MISSING = "--"
PARTIAL = "†"


class Number(NamedTuple):
    """A value with its error, both unrounded. NaN is what does not exist, printed as nothing.

    digits: after the point, where the row and not the column says how many. partial: of some of the
    seeds alone; it is marked, and not ranked.
    """

    value: float
    error: float | None = None
    digits: int | None = None
    partial: bool = False


# None is a missing value, shown as such; an empty text is one that nobody expects.
Cell = str | Number | None


@dataclass(frozen=True)
class Column:
    """A column: text, or numbers that are printed alike.

    key: its name in the CSV file; None leaves it out there. label: its head; None leaves it out
    everywhere else. digits: after the point. scale: of the printed values, 100 for shares in
    percent; the CSV file has the values as they are. sign: print a plus too. error: name of a
    column of errors in the CSV file. ranked: mark best and second.
    """

    key: str | None
    label: str | None
    text: bool = False
    digits: int = 1
    scale: float = 1.0
    sign: bool = False
    error: str | None = None
    ranked: bool = False

    def show(self, value: float, digits: int | None = None) -> str:
        """Print a value, with other digits than the column's if given; nothing for NaN."""
        if math.isnan(value):
            return ""
        return number(self.scale * value, self.digits if digits is None else digits, self.sign)

    def rounded(self, value: float) -> float:
        """Return a value as it is printed."""
        return float(f"{self.scale * value:.{self.digits}f}")


def text(key: str | None, label: str | None) -> Column:
    """Make a column of text."""
    return Column(key, label, text=True)


def percent(key: str, label: str | None, error: str | None = None, ranked: bool = False) -> Column:
    """Make a column of shares in [0, 1], printed in percent."""
    return Column(key, label, scale=100.0, error=error, ranked=ranked)


Row = Sequence[Cell]


@dataclass(frozen=True)
class Block:
    """Rows that are compared with each other; a rule divides blocks."""

    rows: Sequence[Row]
    ranked: bool = True


class Section(NamedTuple):
    """A further table below the first, if it has rows to show; in LaTeX it has its own file.

    name: of its files; that of CSV has `rows`. shown: the rows that are printed. notes: below it.
    """

    name: str
    title: str
    text: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    shown: Sequence[Row]
    notes: Sequence[str] = ()


# (model, method, N, benchmark, metric) to what was measured, in the unit of the papers.
Ours = Callable[[str, str, int, str, str], Number | None]


@dataclass(frozen=True)
class Table:
    """A table: title after that of the study, columns, rows, and what a reader must know.

    notes: one sentence or two each; code in backticks. ours: finds a value to be compared with that
    of a paper.
    """

    title: str
    columns: Sequence[Column]
    blocks: Sequence[Block]
    notes: Sequence[str]
    sections: Sequence[Section] = field(default_factory=tuple)
    ours: Ours | None = None


class Rank(Enum):
    """Place of a value among those of its block and column."""

    BEST = 1
    SECOND = 2
    OTHER = 3


@dataclass(frozen=True)
class _Form:
    """How one of the formats writes what stands in a cell."""

    plain: Callable[[str], str]
    number: Callable[[str, str | None, Rank, bool], str]


def render(table: Table, study: str, title: str, made_from: str) -> dict[str, str]:
    """Return the table's files: text by suffix, and of each section `NAME.csv` and `NAME.tex`.

    Args:
        table: what is rendered.
        study: name of the study.
        title: of the study.
        made_from: hash of the results.
    """
    title = f"{title}: {table.title}"
    rows = [row for block in table.blocks for row in block.rows]
    files = {
        "csv": _csv(table.columns, rows, study, made_from),
        "md": _markdown(table, title, made_from),
        "html": _html(table, title, made_from),
        "tex": _latex(table, made_from),
    }
    for section in table.sections:
        files[f"{section.name}.csv"] = _csv(section.columns, section.rows, study, made_from)
        files[f"{section.name}.tex"] = _latex_section(section, made_from)
    return files


def ranks(block: Block, columns: Sequence[Column]) -> list[list[Rank]]:
    """Rank a block's numbers by column, as printed; equal values share a rank.

    A value that is alone is not ranked, nor is one of some of the seeds; of two there is no second.
    """
    places = [_column_ranks([row[i] for row in block.rows], c) for i, c in enumerate(columns)]
    if not block.ranked:
        return [[Rank.OTHER] * len(columns) for _ in block.rows]
    return [list(row) for row in zip(*places, strict=True)]


def _column_ranks(cells: Sequence[Cell], column: Column) -> list[Rank]:
    printed = [
        column.rounded(cell.value)
        if isinstance(cell, Number) and not cell.partial and not math.isnan(cell.value)
        else None
        for cell in cells
    ]
    values = [value for value in printed if value is not None]
    order = sorted(set(values), reverse=True) if column.ranked and len(values) > 1 else []
    if len(values) == 2:
        order = order[:1]

    def rank(value: float | None) -> Rank:
        place = order.index(value) if value in order else 2
        return (Rank.BEST, Rank.SECOND)[place] if place < 2 else Rank.OTHER

    return [rank(value) for value in printed]


def _lines(columns: Sequence[Column], block: Block, form: _Form) -> Iterator[list[str]]:
    """Format the rows of a block, the columns that have a head."""
    for row, places in zip(block.rows, ranks(block, columns), strict=True):
        yield [
            _cell(cell, column, place, form)
            for cell, column, place in zip(row, columns, places, strict=True)
            if column.label is not None
        ]


def _cell(cell: Cell, column: Column, rank: Rank, form: _Form) -> str:
    if cell is None:
        return MISSING
    if isinstance(cell, str):
        return form.plain(cell)
    value, unsigned = column.show(cell.value, cell.digits), replace(column, sign=False)
    error = None if cell.error is None else unsigned.show(cell.error, cell.digits)
    return form.number(value, error, rank, cell.partial) if value else ""


def _shown(table: Table) -> list[Section]:
    return [section for section in table.sections if section.shown]


def _blocks(section: Section) -> list[Block]:
    """Group the rows of a section by what stands in its first two columns: model and N."""
    shown = [i for i, column in enumerate(section.columns) if column.label is not None][:2]
    groups = groupby(section.shown, key=lambda row: [row[i] for i in shown])
    return [Block(list(rows), ranked=False) for _, rows in groups]


def _head(columns: Sequence[Column]) -> list[str]:
    return [column.label for column in columns if column.label is not None]


def _text_columns(columns: Sequence[Column]) -> int:
    """Return the number of columns of text before the first one of numbers."""
    shown = [column.text for column in columns if column.label is not None]
    return shown.index(False) if False in shown else len(shown)


def _csv(columns: Sequence[Column], rows: Sequence[Row], study: str, made_from: str) -> str:
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    header = ["study"]
    for column in columns:
        header += [name for name in (column.key, column.error) if column.key and name]
    writer.writerow([*header, "made_from"])
    for row in rows:
        line: list[object] = [study]
        for cell, column in zip(row, columns, strict=True):
            if column.key:
                line += _csv_cell(cell, column)
        writer.writerow([*line, made_from])
    return file.getvalue()


def _csv_cell(cell: Cell, column: Column) -> list[object]:
    """Return value and error at full precision; what is missing is empty, never zero."""
    if not isinstance(cell, Number):
        return [cell or None, *([None] if column.error else [])]
    numbers = [cell.value, *([cell.error] if column.error else [])]
    digits = column.digits if cell.digits is None else cell.digits
    return [None if n is None or math.isnan(n) else _whole(n, digits) for n in numbers]


def _whole(value: float, digits: int) -> float | int:
    return int(value) if digits == 0 and math.isfinite(value) else float(value)


def _marked(best: str, second: str, joined: str) -> Callable[[str, str | None, Rank, bool], str]:
    marks = {Rank.BEST: best, Rank.SECOND: second, Rank.OTHER: "{}"}

    def show(value: str, error: str | None, rank: Rank, partial: bool) -> str:
        marked = marks[rank].format(value) + (PARTIAL if partial else "")
        return marked if error is None else joined.format(marked, error)

    return show


def _markdown(table: Table, title: str, made_from: str) -> str:
    form = _Form(str, _marked("**{}**", "<u>{}</u>", "{} ± {}"))

    def body(columns: Sequence[Column], blocks: Sequence[Block]) -> str:
        lines = [line for block in blocks for line in _lines(columns, block, form)]
        return markdown_table(_head(columns), lines, _text_columns(columns))

    parts = [
        f"<!-- made from results {made_from} -->",
        f"# {title}",
        body(table.columns, table.blocks),
        "\n".join(f"- {note}" for note in table.notes),
    ]
    for section in _shown(table):
        parts += [f"## {section.title}", section.text]
        parts.append(body(section.columns, _blocks(section)))
        if section.notes:
            parts.append("\n".join(f"- {note}" for note in section.notes))
    return "\n\n".join(parts) + "\n"


def _html(table: Table, title: str, made_from: str) -> str:
    form = _Form(html, _marked("<b>{}</b>", "<u>{}</u>", "{} ± {}"))

    def body(columns: Sequence[Column], blocks: Sequence[Block]) -> str:
        lines = [list(_lines(columns, block, form)) for block in blocks]
        return html_table([*map(html, _head(columns))], lines, _text_columns(columns))

    def items(notes: Sequence[str]) -> str:
        return "<ul>\n" + "\n".join(f"<li>{html(note)}</li>" for note in notes) + "\n</ul>"

    parts = [body(table.columns, table.blocks), items(table.notes)]
    for section in _shown(table):
        parts += [f"<h2>{html(section.title)}</h2>", f"<p>{html(section.text)}</p>"]
        parts.append(body(section.columns, _blocks(section)))
        if section.notes:
            parts.append(items(section.notes))
    parts.append(f"<p>Made from results <code>{made_from}</code>.</p>")
    return html_page(title, parts)


def _latex(table: Table, made_from: str) -> str:
    sections = ", ".join(f"*.{section.name}.tex" for section in table.sections)
    beside = f"% further tables in files beside this one: {sections}\n" if sections else ""
    return _latex_file(table.columns, table.blocks, table.notes, made_from, beside)


def _latex_section(section: Section, made_from: str) -> str:
    if not section.shown:
        return f"% made from results {made_from}\n% no rows to show\n"
    notes = [section.text, *section.notes]
    return _latex_file(section.columns, _blocks(section), notes, made_from, "")


def _latex_file(
    columns: Sequence[Column],
    blocks: Sequence[Block],
    notes: Sequence[str],
    made_from: str,
    beside: str,
) -> str:
    marks = {Rank.BEST: r"\mathbf{%s}", Rank.SECOND: r"\underline{%s}", Rank.OTHER: "%s"}

    def show(value: str, error: str | None, rank: Rank, partial: bool) -> str:
        below = "" if error is None else rf"_{{\pm {math_number(error)}}}"
        above = r"^{\dagger}" if partial else ""
        return f"${marks[rank] % math_number(value)}{above}{below}$"

    form = _Form(plain_latex, show)
    body = latex_table(
        [plain_latex(head) for head in _head(columns)],
        [list(_lines(columns, block, form)) for block in blocks],
        _text_columns(columns),
    )
    small = "\n\n".join(latex(note) for note in notes)
    return (
        f"% made from results {made_from}\n"
        "% needs \\usepackage{booktabs}\n"
        f"{beside}{body}\n\n\\par\\footnotesize\n{small}\n"
    )
