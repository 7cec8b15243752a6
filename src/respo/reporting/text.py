"""Tables as Markdown and LaTeX."""

import re

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def markdown_table(header: list[str], rows: list[list[str]], text_columns: int) -> str:
    """Lay out a table; columns after the first `text_columns` are aligned to the right."""
    lines = [[cell.replace("|", "\\|") for cell in row] for row in (header, *rows)]
    widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]
    rule = [
        "-" * width if index < text_columns else "-" * (width - 1) + ":"
        for index, width in enumerate(widths)
    ]

    def line(cells: list[str]) -> str:
        padded = (
            cell.ljust(width) if index < text_columns else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join(padded)} |"

    return "\n".join([line(lines[0]), line(rule), *map(line, lines[1:])])


def latex_table(header: list[str], blocks: list[list[list[str]]], text_columns: int) -> str:
    """Lay out a booktabs table of LaTeX cells with a rule between blocks."""
    columns = "l" * text_columns + "r" * (len(header) - text_columns)
    body = "\\midrule\n".join("".join(f"{_row(line)}\n" for line in block) for block in blocks)
    return (
        f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{_row(header)}\n\\midrule\n"
        f"{body}\\bottomrule\n\\end{{tabular}}"
    )


def _row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def plain_latex(text: str) -> str:
    """Escape text for LaTeX."""
    return "".join(_SPECIAL.get(character, character) for character in text)


def latex(text: str) -> str:
    """Escape text for LaTeX; what stands in backticks is set as code."""
    parts = re.split("`(.*?)`", text)
    return "".join(
        rf"\texttt{{{plain_latex(part)}}}" if index % 2 else plain_latex(part)
        for index, part in enumerate(parts)
    )
