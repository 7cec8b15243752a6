"""Weight surfaces: the coefficient over (pi_old, pi) by sign of the advantage. ASPO, Fig. 4.

Departures from the paper: a map in colours instead of a surface in three dimensions, and any
objectives at token level beside the clipped ratio.
"""

import math
import textwrap

from matplotlib.figure import Figure

from respo.cli import UserError
from respo.config.schema import Method
from respo.objectives import is_sequence_level
from respo.reporting import style, surfaces
from respo.reporting.kernels import SIGNS, assumptions, coefficient_surface
from respo.reporting.results import Results

NOTE = (
    f"hatched: c = 0, no gradient; dashes: {surfaces.NEW} = {surfaces.OLD}; A is 1 or −1; "
    "responses of one token"
)
PANEL = 1.55  # inches
TITLE_WIDTH = 20  # characters


def draw(results: Results) -> Figure:
    """Draw the methods of the study that are at token level."""
    return draw_methods(results.study.methods)


def draw_methods(methods: dict[str, Method]) -> Figure:
    """Draw a pair of panels per method that is at token level, two pairs in a row.

    Raises:
        UserError: there is none.
    """
    shown = [m for m in methods.values() if not is_sequence_level(m.objective)]
    left_out = [m.label for m in methods.values() if is_sequence_level(m.objective)]
    if not shown:
        raise UserError(
            "aspo/fig4 draws objectives at token level, and there is none among "
            f"{', '.join(methods)}; add one, or leave the figure out"
        )
    columns, rows = min(2, len(shown)) * len(SIGNS), math.ceil(len(shown) / 2)
    figure = Figure(
        figsize=(0.9 + PANEL * columns, 0.6 + (PANEL + 0.4) * rows), layout="constrained"
    )
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    spare = list(panels.flat)
    for method in shown:
        label = textwrap.fill(method.label, TITLE_WIDTH)
        for sign, title in SIGNS.items():
            axes = spare.pop(0)
            image = surfaces.draw_surface(axes, coefficient_surface(method, sign))
            axes.set_title(f"{label}\n{title}")
    for axes in spare:
        axes.set_axis_off()
    for column in panels.T:
        lowest = column[-1] if column[-1].axison else column[-2]
        lowest.set_xlabel(surfaces.OLD)
        lowest.tick_params(labelbottom=True)
    for axes in panels[:, 0]:
        axes.set_ylabel(surfaces.NEW)
    surfaces.add_color_bar(figure, image, panels, shrink=min(1, 2 / rows), pad=0.02)
    note = NOTE + assumptions(shown)
    if left_out:
        note += f"\nleft out, since all tokens of a response share one c: {', '.join(left_out)}"
    style.note(figure, note)
    return figure
