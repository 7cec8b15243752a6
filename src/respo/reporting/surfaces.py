"""Coefficients over (pi_old, pi) in colour: the lighter the larger, hatched where c = 0.

Lightness alone orders the colours: they say the same in grey print and to all kinds of colour
vision. None is as light as the white of what has no colour, hatched or dotted.
"""

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.patches import Rectangle
from matplotlib.ticker import FixedLocator, NullLocator

# Beyond these, colours stay what they are.
COLOR_RANGE = (0.1, 10.0)
COLORS = ListedColormap(colormaps["viridis"](np.linspace(0, 0.88, 256)))
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10)
OLD = r"$\pi_\mathrm{old}$"
NEW = r"$\pi$"


def draw_surface(axes: Axes, c: np.ndarray) -> AxesImage:
    """Draw c, a row per pi and a column per pi_old."""
    whole = {"extent": (0, 1, 0, 1), "origin": "lower", "interpolation": "nearest"}
    axes.grid(False)
    axes.add_patch(no_gradient())
    if (c < 0).any():
        middle = (np.arange(len(c)) + 0.5) / len(c)
        dots = axes.contourf(middle, middle, c < 0, [0.5, 1.5], colors="white", hatches=["...."])
        dots.set(edgecolor="#777777", linewidth=0)
    image = axes.imshow(
        np.ma.masked_where(c <= 0, c),
        norm=LogNorm(*COLOR_RANGE),
        cmap=COLORS,
        **whole,  # type: ignore[arg-type]
    )
    axes.plot([0, 1], [0, 1], color="white", linewidth=0.8, linestyle=(0, (3, 3)))
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_xticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"])
    axes.tick_params(length=2)
    for spine in axes.spines.values():
        spine.set(visible=True, linewidth=0.6)
    return image


def no_gradient() -> Rectangle:
    """Return the patch that shows c = 0, below the colours and in a legend."""
    return Rectangle(
        (0, 0), 1, 1, facecolor="white", edgecolor="#777777", hatch="/////", linewidth=0, zorder=0
    )


def add_color_bar(figure: Figure, image: AxesImage, panels: object, **options: object) -> None:
    """Put the scale of all surfaces beside the panels."""
    bar = figure.colorbar(image, ax=panels, extend="both", label="coefficient c", **options)  # type: ignore[arg-type]
    bar.ax.yaxis.set_major_locator(FixedLocator(TICKS))
    bar.ax.yaxis.set_minor_locator(NullLocator())
    bar.ax.set_yticklabels([f"{tick:g}" for tick in TICKS])
    bar.outline.set_linewidth(0.6)  # type: ignore[operator]
