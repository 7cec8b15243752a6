"""Tables as Markdown, HTML and LaTeX."""

import re
from html import escape

# Longer cells may be broken into lines.
PROSE = 40
# More columns that stay in sight would leave too little room for the others.
LEAD = 4
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "×": r"$\times$",
    "†": r"$^{\dagger}$",
    "²": "$^2$",
    "≤": r"$\leq$",
    "−": "$-$",
    # At the start of a line these would belong to the end of the line before.
    "[": "{[}",
    "*": "{*}",
    # Outside of mathematics the default font has other characters in their place.
    **{character: f"${character}$" for character in "<>|"},
    **{character: f"\\{character}" for character in "&%$#_{}"},
}

_FORMULAS = {"|A| c": r"$|A|\,c$", "log W": r"$\log W$"}


def number(value: float, digits: int, sign: bool = False) -> str:
    """Print a number: thousands apart, with a proper minus, and no sign of what prints as zero.

    Args:
        value: the number.
        digits: after the point.
        sign: print a plus too.
    """
    shown = f"{value:{'+' if sign else ''},.{digits}f}"
    if not re.search("[1-9]", shown):
        return shown.lstrip("+-")
    return shown.replace("-", "−")


def math_number(text: str) -> str:
    """Write what `number` prints in the mathematics of LaTeX."""
    return text.replace("−", "-").replace(",", "{,}")


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

    Columns after the first `text_columns` are right-aligned. These, but no more than `LEAD`, or the
    first one if all are of text, stay in sight when a reader scrolls to the right.
    """
    lead = min(text_columns, LEAD) if text_columns < len(header) else 1

    def line(cells: list[str], tag: str) -> str:
        kinds = [
            ("text" if index < text_columns else "number")
            + (" lead" if index < lead else "")
            + (" prose" if len(cell) > PROSE else "")
            for index, cell in enumerate(cells)
        ]
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
body {{ font: 15px/1.45 system-ui, sans-serif; margin: 2rem auto; max-width: min(110rem, 96vw); }}
p, ul {{ max-width: 70rem; }}
table {{ display: block; overflow-x: auto; border-collapse: separate; border-spacing: 0; }}
table {{ font-size: 13px; font-variant-numeric: tabular-nums; }}
/* A shadow at the right edge, covered at the end of the way by what scrolls with the cells. */
table {{ background:
  linear-gradient(to left, Canvas 50%, transparent) right / 3rem 100% no-repeat local,
  linear-gradient(to left, #888c, transparent) right / 1rem 100% no-repeat scroll; }}
tbody tr:first-child td {{ border-top: 2px solid #888a; }}
th, td {{ padding: 0.2rem 0.45rem; border-bottom: 1px solid #8884; white-space: nowrap; }}
th {{ white-space: normal; vertical-align: bottom; }}
.text {{ text-align: left; }}
.number {{ text-align: right; }}
.prose {{ white-space: normal; min-width: 16rem; }}
td.prose {{ vertical-align: top; }}
@media (min-width: 50rem) {{ .lead {{ position: sticky; left: 0; background: Canvas; }} }}
</style>
<h1>{escape(title)}</h1>
{body}
<script>
// Columns that stay in sight stand beside each other: each begins where those before it end.
for (const table of document.querySelectorAll("table")) {{
  const ends = [0];
  for (const cell of table.querySelectorAll("th.lead")) {{
    ends.push(ends.at(-1) + cell.getBoundingClientRect().width);
  }}
  for (const row of table.querySelectorAll("tr")) {{
    row.querySelectorAll(".lead").forEach((cell, place) => {{
      cell.style.left = `${{ends[place]}}px`;
    }});
  }}
}}
</script>
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
    """Escape text for LaTeX; the formulas of `_FORMULAS` become mathematics."""
    parts = re.split(f"({'|'.join(map(re.escape, _FORMULAS))})", text)
    return "".join(
        _FORMULAS.get(part) or "".join(_SPECIAL.get(character, character) for character in part)
        for part in parts
    )


def latex(text: str) -> str:
    """Escape text for LaTeX; what stands in backticks is set as code."""
    parts = re.split("`(.*?)`", text)
    return "".join(
        rf"\texttt{{{plain_latex(part)}}}" if index % 2 else plain_latex(part)
        for index, part in enumerate(parts)
    )
