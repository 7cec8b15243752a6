"""The tables of some studies as LaTeX with booktabs, checked without a LaTeX.

What is checked are the rules of the language: braces and dollars in pairs, special characters
escaped outside of mathematics, as many cells in each row as there are columns, no command but those
of LaTeX itself and booktabs, and ASCII alone.
"""

import re
from pathlib import Path

import pytest

from respo.reporting import table

CONFIG = Path(__file__).parents[3] / "config"
STUDIES = ("aspo-code", "respo", "tiny-methods", "tiny-moe")
COMMANDS = {
    "begin", "end", "toprule", "midrule", "bottomrule", "par", "footnotesize", "texttt",
    "textbackslash", "textasciitilde", "textasciicircum",
}  # fmt: skip
MATHEMATICS = {"pm", "times", "dagger", "leq", "log", "mathbf", "underline"}


def check(text):
    """Fail where LaTeX would."""
    assert text.isascii(), sorted(set(re.findall(r"[^\x00-\x7f]", text)))
    lines = [line for line in text.splitlines() if not line.startswith("%")]
    body = re.sub(r"\\\\(?=\n)", "", "\n".join(lines))
    depth, mathematics = 0, False
    for part in re.findall(r"\\(?:[a-zA-Z]+|.)|\n\n|.", body, flags=re.S):
        if part == "$":
            mathematics = not mathematics
        elif part == "\n\n":
            assert not mathematics, "mathematics does not end in its paragraph"
        elif part in "{}":
            depth += 1 if part == "{" else -1
            assert depth >= 0
        elif part[0] == "\\" and part[1:].isalpha():
            assert part[1:] in (MATHEMATICS if mathematics else COMMANDS), part
        elif part[0] == "\\":
            assert part[1] in ("," if mathematics else "&%$#_{}"), part
        elif not mathematics:
            assert part not in "_^#%~<>|", part
    assert depth == 0
    assert not mathematics
    if "tabular" in body:
        lines = _check_rows(lines)
    assert not any("&" in line.replace(r"\&", "") for line in lines)


def _check_rows(lines):
    """Check a table, and return the lines after it."""
    (start,) = [i for i, line in enumerate(lines) if line.startswith(r"\begin{tabular}")]
    columns = re.fullmatch(r"\\begin\{tabular\}\{([lr]+)\}", lines[start]).group(1)
    end = lines.index(r"\end{tabular}")
    rules = [line for line in lines[start:end] if line.endswith("rule")]
    assert rules[0] == r"\toprule"
    assert rules[-1] == r"\bottomrule"
    assert set(rules[1:-1]) == {r"\midrule"}
    for line in lines[start + 1 : end]:
        if line in rules:
            continue
        assert line.endswith(r" \\")
        assert len(re.findall(r"(?<!\\)&", line)) == len(columns) - 1
        # These would be an option of the end of the line before.
        assert line[0] not in "[*"
    return lines[end:]


@pytest.mark.parametrize("name", STUDIES)
def test_tables_of_each_study_are_latex(paper, name):
    made = paper(name)
    for id_ in made.study.study.tables:
        for suffix, text in table.make(id_, made.results, CONFIG / "reference").items():
            if suffix.endswith("tex"):
                check(text)


def test_tables_with_values_are_latex(paper):
    made = paper("maspo")
    for method, correct in (("maspo", 16), ("maspo-a0.5-b0", 4), ("grpo", 2), ("sapo", 3)):
        made.cells(method, "r1-distill-qwen-7b-8k", 16, [correct, 0])
    for id_ in made.study.study.tables:
        for suffix, text in table.make(id_, made.results, CONFIG / "reference").items():
            if suffix.endswith("tex"):
                check(text)


@pytest.mark.parametrize(
    "bad",
    [
        r"\textbf{a}", "a_b", "50 %", "{", "}", "$a", "\u00b1", "a & b", r"\pm", "a\\\\b",
        "\\begin{tabular}{lr}\n\\toprule\na \\\\\n\\bottomrule\n\\end{tabular}",
        "\\begin{tabular}{l}\n\\toprule\n[a \\\\\n\\bottomrule\n\\end{tabular}",
        "\\begin{tabular}{l}\na \\\\\n\\bottomrule\n\\end{tabular}",
    ],
)  # fmt: skip
def test_the_check_finds_what_is_wrong(bad):
    with pytest.raises((AssertionError, IndexError)):
        check(bad)
