"""Tables as Markdown, HTML and LaTeX."""

import re
from html import escape

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "≤": r"$\leq$",
    "−": "$-$",
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


def html_table(header: list[str], blocks: list[list[list[str]]], text_columns: int) -> str:
    """Lay out a table of HTML cells with a rule between blocks of rows.

    Columns after the first `text_columns` are right-aligned.
    """

    def line(cells: list[str], tag: str) -> str:
        kinds = ["text"] * text_columns + ["number"] * (len(cells) - text_columns)
        return "".join(
            f'<{tag} class="{kind}">{cell}</{tag}>' for kind, cell in zip(kinds, cells, strict=True)
        )

    body = "\n".join(
        "<tbody>\n" + "\n".join(f"<tr>{line(row, 'td')}</tr>" for row in block) + "\n</tbody>"
        for block in blocks
    )
    return f"<table>\n<thead>\n<tr>{line(header, 'th')}</tr>\n</thead>\n{body}\n</table>"


def html_page(title: str, parts: list[str]) -> str:
    """Return a page that needs no other file and reads well in light and dark browsers."""
    body = "\n".join(parts)
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{escape(title)}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: min(110rem, 94vw); }}
p, ul {{ max-width: 70rem; }}
table {{ display: block; overflow-x: auto; border-collapse: collapse; }}
table {{ font-variant-numeric: tabular-nums; }}
tbody {{ border-top: 2px solid #888a; }}
th, td {{ padding: 0.25rem 0.7rem; border-bottom: 1px solid #8884; white-space: nowrap; }}
.text {{ text-align: left; }}
.number {{ text-align: right; }}
</style>
<h1>{escape(title)}</h1>
{body}
</html>
"""


def html(text: str) -> str:
    """Escape text for HTML; what stands in backticks is set as code."""
    return re.sub("`(.*?)`", r"<code>\1</code>", escape(text))


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
