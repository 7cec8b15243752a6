"""Every expected text is written by hand from the rules of the table's notes."""

import csv
import io
import math

import pytest

from respo.reporting.layout import (
    Block,
    Column,
    Number,
    Rank,
    Section,
    Table,
    percent,
    ranks,
    render,
    text,
)

COLUMNS = [
    text("name", None),
    text(None, "Method"),
    percent("score", "Score", "score_error", ranked=True),
    Column("length", "Length", digits=0),
]


def table(*rows, **changes):
    values = {"title": "t", "columns": COLUMNS, "blocks": [Block(rows)], "notes": ["A `note`."]}
    return Table(**{**values, **changes})


def rendered(*rows, **changes):
    return render(table(*rows, **changes), "s", "A study", "0123")


FULL = ["a", "A & b", Number(0.5, 0.0123), Number(12)]
TIED = ["b", "B", Number(0.49996, 0.02), Number(1234)]
NEXT = ["c", "C_1", Number(0.25, 0.0), Number(math.nan)]
GONE = ["d", "D", None, ""]


def test_markdown():
    assert rendered(FULL, TIED, NEXT, GONE)["md"] == (
        "<!-- made from results 0123 -->\n"
        "\n"
        "# A study: t\n"
        "\n"
        "| Method |             Score | Length |\n"
        "| ------ | ----------------: | -----: |\n"
        "| A & b  |    **50.0** ± 1.2 |     12 |\n"
        "| B      |    **50.0** ± 2.0 |  1,234 |\n"
        "| C_1    | <u>25.0</u> ± 0.0 |        |\n"
        "| D      |                -- |        |\n"
        "\n"
        "- A `note`.\n"
    )


def test_csv_is_exact_and_leaves_gaps():
    rows = list(csv.reader(io.StringIO(rendered(FULL, NEXT, GONE)["csv"])))
    assert rows == [
        ["study", "name", "score", "score_error", "length", "made_from"],
        ["s", "a", "0.5", "0.0123", "12", "0123"],
        ["s", "c", "0.25", "0.0", "", "0123"],
        ["s", "d", "", "", "", "0123"],
    ]


def test_latex_escapes_text_and_marks_numbers():
    lines = rendered(FULL, NEXT, GONE)["tex"].splitlines()
    assert lines[2:10] == [
        r"\begin{tabular}{lrr}",
        r"\toprule",
        r"Method & Score & Length \\",
        r"\midrule",
        r"A \& b & $\mathbf{50.0}_{\pm 1.2}$ & $12$ \\",
        r"C\_1 & $25.0_{\pm 0.0}$ &  \\",
        r"D & -- &  \\",
        r"\bottomrule",
    ]
    assert lines[-1] == r"A \texttt{note}."


def test_latex_has_a_rule_between_blocks():
    text_ = render(table(blocks=[Block([FULL]), Block([TIED])]), "s", "A study", "0123")["tex"]
    assert text_.count(r"\midrule") == 2


def test_html_escapes_text():
    shown = rendered(FULL, GONE)["html"]
    assert '<td class="text lead">A &amp; b</td><td class="number">50.0 ± 1.2</td>' in shown
    assert '<td class="number">--</td>' in shown
    assert "<li>A <code>note</code>.</li>" in shown


def test_ranks_are_of_printed_values_within_a_block():
    rows = [FULL, TIED, NEXT, GONE, ["e", "E", Number(0.1), ""], ["f", "F", Number(math.nan), ""]]
    column = [row[2] for row in ranks(Block(rows), COLUMNS)]
    assert column == [Rank.BEST, Rank.BEST, Rank.SECOND, Rank.OTHER, Rank.OTHER, Rank.OTHER]


def test_columns_and_blocks_without_ranks():
    assert {row[3] for row in ranks(Block([FULL, TIED]), COLUMNS)} == {Rank.OTHER}
    assert {row[2] for row in ranks(Block([FULL, TIED], ranked=False), COLUMNS)} == {Rank.OTHER}
    assert {row[2] for row in ranks(Block([FULL, GONE]), COLUMNS)} == {Rank.OTHER}  # alone


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        (Column("x", "X", digits=2), -0.126, "−0.13"),
        (Column("x", "X", scale=100.0, sign=True), 0.013, "+1.3"),
        (Column("x", "X", digits=0), 12345.6, "12,346"),
        (Column("x", "X", digits=3), -1234.5, "−1,234.500"),
        (Column("x", "X"), -0.04, "0.0"),
        (Column("x", "X", sign=True), 0.04, "0.0"),
        (Column("x", "X"), math.nan, ""),
    ],
)
def test_numbers_are_printed(column, value, shown):
    assert column.show(value) == shown


def test_of_two_values_there_is_no_second():
    column = [row[2] for row in ranks(Block([FULL, NEXT, GONE]), COLUMNS)]
    assert column == [Rank.BEST, Rank.OTHER, Rank.OTHER]


def test_values_of_some_seeds_are_marked_and_not_ranked():
    part = ["p", "P", Number(0.9, 0.01, partial=True), Number(1234.0)]
    rows = [part, FULL, NEXT]
    assert [row[2] for row in ranks(Block(rows), COLUMNS)] == [Rank.OTHER, Rank.BEST, Rank.OTHER]
    files = rendered(*rows)
    assert "| P      |    90.0† ± 1.0 |  1,234 |" in files["md"]
    assert r"P & $90.0^{\dagger}_{\pm 1.0}$ & $1{,}234$ \\" in files["tex"]
    assert files["csv"].splitlines()[1] == "s,p,0.9,0.01,1234,0123"


def test_a_row_may_have_its_own_digits():
    files = rendered(["a", "A", Number(0.5), Number(2.25, digits=2)])
    assert "|   2.25 |" in files["md"]
    assert files["csv"].splitlines()[1] == "s,a,0.5,,2.25,0123"


def test_the_error_of_a_difference_has_no_sign():
    columns = [text(None, "Method"), Column("gain", "Gain", scale=100.0, sign=True)]
    shown = rendered(["A", Number(0.03, 0.008)], columns=columns)["md"]
    assert "| A      | +3.0 ± 0.8 |" in shown


def test_a_section_stands_below_and_has_its_own_file():
    columns = [text("pair", "Pair"), Column("difference", "Difference", sign=True)]
    rows = [["a - b", Number(1.0)], ["a - c", Number(-2.0)]]
    section = Section("pairs", "Pairs", "All of them.", columns, rows, rows[:1], ["1: b."])
    files = rendered(FULL, sections=[section])
    assert files["md"].endswith(
        "## Pairs\n\nAll of them.\n\n"
        "| Pair  | Difference |\n| ----- | ---------: |\n| a - b |       +1.0 |\n\n- 1: b.\n"
    )
    assert "<h2>Pairs</h2>\n<p>All of them.</p>" in files["html"]
    assert "<li>1: b.</li>" in files["html"]
    assert files["tex"].splitlines()[2] == (
        "% further tables in files beside this one: *.pairs.tex"
    )
    assert files["pairs.tex"] == (
        "% made from results 0123\n"
        "% needs \\usepackage{booktabs}\n"
        "\\begin{tabular}{lr}\n\\toprule\nPair & Difference \\\\\n\\midrule\n"
        "a - b & $+1.0$ \\\\\n\\bottomrule\n\\end{tabular}\n\n"
        "\\par\\footnotesize\nAll of them.\n\n1: b.\n"
    )
    assert files["pairs.csv"].splitlines() == [
        "study,pair,difference,made_from", "s,a - b,1.0,0123", "s,a - c,-2.0,0123",
    ]  # fmt: skip


def test_a_section_without_rows_is_an_empty_file_alone():
    files = rendered(FULL, sections=[Section("pairs", "Pairs", "", [text("x", "X")], [], [])])
    assert "Pairs" not in files["md"] + files["html"]
    assert files["pairs.csv"] == "study,x,made_from\n"
    assert files["pairs.tex"] == "% made from results 0123\n% no rows to show\n"
