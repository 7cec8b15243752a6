from respo.reporting.text import html, html_table, latex, latex_table, markdown_table, plain_latex


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


def test_html_escapes_what_is_special():
    assert html("make `a<b>` & go") == "make <code>a&lt;b&gt;</code> &amp; go"


def test_html_aligns_numbers_to_the_right():
    assert html_table(["A", "B"], [[["x", "1"]], [["y", "2"]]], text_columns=1) == (
        '<table>\n<thead>\n<tr><th class="text">A</th><th class="number">B</th></tr>\n</thead>\n'
        '<tbody>\n<tr><td class="text">x</td><td class="number">1</td></tr>\n</tbody>\n'
        '<tbody>\n<tr><td class="text">y</td><td class="number">2</td></tr>\n</tbody>\n</table>'
    )
