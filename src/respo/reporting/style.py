"""How every figure looks: colours, line styles, sizes, and files that do not depend on the day."""

import math
import textwrap
from collections.abc import Collection, Iterable
from contextlib import AbstractContextManager
from io import BytesIO
from itertools import product
from pathlib import Path
from typing import Any
from zlib import crc32

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import ScalarFormatter

from respo.files import atomic_path

# Okabe and Ito's palette, made for all kinds of colour vision; without its yellow, too light on
# white, and its black, kept for text.
ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE = (
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
)
# More of them, as far from those and from each other as those are, for all kinds of colour vision.
VIOLET, BROWN, SAGE, INDIGO, GRAPHITE = "#8600F3", "#612400", "#92B661", "#241892", "#4D4D4D"
# A method looks the same in every figure of every study. Dashes tell lines apart without colour.
FIXED: dict[str, dict[str, Any]] = {
    "grpo": {"color": ORANGE, "linestyle": "-"},
    "gspo": {"color": BLUE, "linestyle": (0, (4, 2))},
    "vespo": {"color": GREEN, "linestyle": (0, (6, 1.5, 1, 1.5))},
    "respo": {"color": VERMILION, "linestyle": "-", "linewidth": 2.0},
    "aspo": {"color": PURPLE, "linestyle": "-", "linewidth": 2.0},
    "maspo": {"color": SKY, "linestyle": "-", "linewidth": 2.0},
}
# Routing replay is the same method trained otherwise: dashes, so that grey print shows it too.
REPLAY: dict[str, dict[str, Any]] = {
    "respo-r2": {"color": INDIGO, "linestyle": (0, (1.2, 1)), "linewidth": 2.0},
    "respo-r3": {"color": BROWN, "linestyle": (0, (3, 1.5)), "linewidth": 2.0},
}
_WATERMARK: dict[str, Any] = {
    "ha": "center",
    "va": "center",
    "rotation": 20,
    "fontsize": 15,
    "color": "#C8C8C8",
    "zorder": 1,
}
FORMATS = ("pdf", "png", "svg")
NOTE_LINE = 0.125  # inches
REFERENCE: dict[str, Any] = {"color": "#B0B0B0", "linestyle": "-", "linewidth": 1.2, "zorder": 1.5}
# The model that all runs of a panel start from.
START: dict[str, Any] = {
    "color": "#222222",
    "marker": "D",
    "markerfacecolor": "white",
    "linestyle": "none",
    "zorder": 3,
}
_FIXED_COLORS = [line["color"] for line in FIXED.values()]
_OTHERS: list[dict[str, Any]] = [
    {"color": color, "linestyle": dashes}
    for dashes, color in product(
        ("-", (0, (1, 1.2)), (0, (3, 1, 1, 1, 1, 1)), (0, (5, 3))),
        (VIOLET, BROWN, SAGE, INDIGO, GRAPHITE, PURPLE, SKY, BLUE, GREEN, ORANGE, VERMILION),
    )
    # Solid lines of these are those of fixed methods.
    if dashes != "-" or color not in (ORANGE, VERMILION, PURPLE, SKY)
]

_STYLE: dict[str, Any] = {
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#EBEBEB",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.5,
    "legend.frameon": False,
    "figure.dpi": 100,
    "svg.hashsalt": "respo",
    "hatch.linewidth": 0.6,
    "pdf.fonttype": 42,  # editable text, accepted by journals
}


def applied() -> AbstractContextManager[None]:
    """Return a context in which figures look as they should, whatever the user's matplotlibrc."""
    return matplotlib.style.context(["default", _STYLE])


def lines(methods: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the line of each method: fixed for a known name, else chosen by the name.

    Give all methods of a study, also where few are shown: then each looks the same in all figures.
    """
    taken: dict[str, dict[str, Any]] = {}
    for method in methods:
        known = FIXED.get(method) or REPLAY.get(method)
        taken[method] = known or _free(method, list(taken.values()))
    return taken


def _free(method: str, taken: list[dict[str, Any]]) -> dict[str, Any]:
    """Choose the method's own line, or else the next that is free, of the rarest colour and dashes.

    Colours of fixed methods count as used, or a line would depend on whether those are there.
    """
    start = crc32(method.encode()) % len(_OTHERS)
    own_first = _OTHERS[start:] + _OTHERS[:start]
    others = [line for line in taken if line not in FIXED.values()]
    colors = [*_FIXED_COLORS, *(line["color"] for line in others)]
    dashes = [line["linestyle"] for line in others]
    free = [line for line in own_first if line not in taken] or own_first
    return min(
        free, key=lambda line: (colors.count(line["color"]), dashes.count(line["linestyle"]))
    )


def nested(lines: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Give lines that may lie on one another falling widths, so that all of them are seen.

    The widest lies below. Those that are wide in all figures come first, then the order given.
    """
    step = 2.4 / len(lines)
    widest_first = sorted(lines, key=lambda name: -lines[name].get("linewidth", 0))
    places = {name: place for place, name in enumerate(widest_first)}
    return {
        name: {
            **line,
            "linewidth": 1.1 + step * (len(lines) - 1 - places[name]),
            "zorder": 2 + places[name] / len(lines),
        }
        for name, line in lines.items()
    }


def legend_rows(entries: Collection[str], width: float) -> int:
    """Return the number of rows of a legend in a figure of this width in inches."""
    return math.ceil(len(entries) / _legend_columns(entries, width))


def _legend_columns(entries: Iterable[str], width: float) -> int:
    """Return a number of columns that fit, in as few rows as can be, and those as even as can be.

    Each is as wide as its widest entry.
    """
    inches = [max(0.95, 0.68 + 0.07 * len(entry)) for entry in entries]
    for columns in range(len(inches), 1, -1):
        # matplotlib fills them as evenly as array_split, from top to bottom.
        if sum(part.max() for part in np.array_split(inches, columns)) <= width:
            return math.ceil(len(inches) / math.ceil(len(inches) / columns))
    return 1


def legend(figure: Figure, entries: dict[str, dict[str, Any]], below: bool = False) -> None:
    """Put labels and their lines above or below the panels, in as many columns as fit."""
    columns = _legend_columns(entries, figure.get_figwidth())
    figure.legend(
        [Line2D([], [], **line) for line in entries.values()],
        list(entries),
        loc="outside lower center" if below else "outside upper center",
        handlelength=3.2,  # a whole period of every dash
        ncols=min(len(entries), columns),
    )


def note(figure: Figure, text: str) -> None:
    """Put small print below the panels, and below what stands there, wrapped to the figure's width.

    The figure grows by as much: the panels keep their size.
    """
    width = int(16 * figure.get_figwidth())
    lines = [
        line
        for paragraph in text.splitlines()
        for line in textwrap.wrap(paragraph, width, break_on_hyphens=False)
    ]
    before = figure.get_supxlabel().splitlines()
    figure.supxlabel("\n".join([*before, *lines]), fontsize=7, color="#555555")
    figure.set_figheight(figure.get_figheight() + NOTE_LINE * len(lines))


def mark_synthetic(figure: Figure, text: str) -> None:
    """Say in each panel, and in the small print, that the numbers are made up."""
    for axes in figure.axes:
        if axes.axison:
            axes.text(0.5, 0.5, "synthetic", transform=axes.transAxes, **_WATERMARK)
    note(figure, text)


def plain_ticks(axes: Axes) -> None:
    """Write the ticks of the vertical axis in full, without a factor or a summand for all.

    They stand at the top of an axis, where they are missed, the more if panels share it.
    """
    axes.yaxis.set_major_formatter(_Plain(useOffset=False))
    axes.ticklabel_format(axis="y", style="plain")


class _Plain(ScalarFormatter):
    """Writes zero without the digits of its neighbours."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return "0" if x == 0 else super().__call__(x, pos)


def save(figure: Figure, stem: Path, made_from: str) -> list[Path]:
    """Write `stem.pdf` and `stem.png`, with what they were made from."""
    paths = [stem.with_name(f"{stem.name}.{suffix}") for suffix in ("pdf", "png")]
    for path in paths:
        write(figure, path, f"made from results {made_from}")
    return paths


def write(figure: Figure, path: Path, source: str, dpi: int = 180) -> None:
    """Write a figure in one of `FORMATS`, chosen by the suffix, with its source, without dates."""
    suffix = path.suffix[1:]
    # In memory first: on a full disk, matplotlib ends with an error of its own.
    buffer = BytesIO()
    figure.savefig(buffer, format=suffix, dpi=dpi, metadata=_metadata(suffix, source))
    with atomic_path(path) as temporary:
        temporary.write_bytes(buffer.getvalue())


def _metadata(suffix: str, source: str) -> dict[str, Any]:
    match suffix:
        case "pdf":
            return {"Subject": source, "CreationDate": None}
        case "svg":
            return {"Source": source, "Date": None}
        case _:
            return {"Source": source}
