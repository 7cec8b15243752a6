import pytest

from respo.reporting.text import (
    html,
    html_table,
    latex,
    latex_table,
    markdown_table,
    math_number,
    number,
    plain_latex,
)


def test_markdown_aligns_numbers_to_the_right_and_escapes_bars():
    assert markdown_table(["A", "B"], [["x|y", "1.0"]], text_columns=1) == (
        "| A    |   B |\n"
        "| ---- | --: |\n"
        "| x\\|y | 1.0 |"
    )  # fmt: skip


def test_latex_rules_between_blocks():
    assert latex_table(["A", "B"], [[["x", "1"]], [["y", "2"]]], text_columns=1) == (
        "\\begin{tabular}{lr}\n\\toprule\nA & B \\\\\n\\midrule\n"
        "x & 1 \\\\\n\\midrule\ny & 2 \\\\\n\\bottomrule\n\\end{tabular}"
    )


def test_latex_escapes_what_is_special():
    assert plain_latex("50 % & a_b #1 {$} ~^\\") == (
        r"50 \% \& a\_b \#1 \{\$\} \textasciitilde{}\textasciicircum{}\textbackslash{}"
    )
    assert latex("make `a_b` ± 1") == r"make \texttt{a\_b} $\pm$ 1"


def test_latex_sets_formulas_as_mathematics():
    assert plain_latex("> 5 of |A| c, log W ≤ −1, 2 × 3†") == (
        r"$>$ 5 of $|A|\,c$, $\log W$ $\leq$ $-$1, 2 $\times$ 3$^{\dagger}$"
    )


@pytest.mark.parametrize(
    ("value", "digits", "sign", "shown", "in_latex"),
    [
        (-1234.56, 1, False, "−1,234.6", "-1{,}234.6"),
        (0.26, 1, True, "+0.3", "+0.3"),
        (-0.01, 1, True, "0.0", "0.0"),
        (999.9, 0, False, "1,000", "1{,}000"),
    ],
)
def test_numbers(value, digits, sign, shown, in_latex):
    assert number(value, digits, sign) == shown
    assert math_number(shown) == in_latex


def test_long_cells_may_be_broken_and_of_text_alone_the_first_stays():
    shown = html_table(["A", "B"], [[["x", "long " * 10]]], text_columns=2)
    assert '<td class="text lead">x</td><td class="text prose">long ' in shown


def test_no_more_than_four_columns_stay_in_sight():
    shown = html_table(list("ABCDEF"), [], text_columns=5)
    assert shown.count("text lead") == 4
    assert '<th class="text">E</th><th class="number">F</th>' in shown


def test_html_escapes_what_is_special():
    assert html("make `a<b>` & go") == "make <code>a&lt;b&gt;</code> &amp; go"


def test_html_aligns_numbers_to_the_right():
    assert html_table(["A", "B"], [[["x", "1"]], [["y", "2"]]], text_columns=1) == (
        '<table>\n<thead>\n<tr><th class="text lead">A</th><th class="number">B</th></tr>\n'
        "</thead>\n"
        '<tbody>\n<tr><td class="text lead">x</td><td class="number">1</td></tr>\n</tbody>\n'
        '<tbody>\n<tr><td class="text lead">y</td><td class="number">2</td></tr>\n</tbody>\n'
        "</table>"
    )
