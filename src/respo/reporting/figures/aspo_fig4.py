"""Weight surfaces: the coefficient over (pi_old, pi) by sign of the advantage. ASPO, Fig. 4.

Departures from the paper: a map in colours instead of a surface in three dimensions, and any
objectives whose coefficient is a token's own beside the clipped ratio.
"""

import math
import textwrap

from matplotlib.figure import Figure

from respo.cli import UserError
from respo.config.schema import Method
from respo.reporting import style, surfaces
from respo.reporting.choices import is_of_token
from respo.reporting.kernels import SIGNS, assumptions, coefficient_surface
from respo.reporting.results import Results

# Not to be wrapped.
DIAGONAL = f"{surfaces.NEW} = {surfaces.OLD}".replace(" ", "\N{NO-BREAK SPACE}")
NOTE = f"hatched: c = 0, no gradient; dashes: {DIAGONAL}; A is 1 or −1"
PANEL = 1.4  # inches
GAP = 0.15
TITLE_WIDTH = 20  # characters
TITLE_LINE = 0.16  # inches


def draw(results: Results) -> Figure:
    """Draw the methods of the study whose coefficient is a token's own."""
    return draw_methods(results.study.methods)


def draw_methods(methods: dict[str, Method]) -> Figure:
    """Draw a pair of panels per method whose coefficient is a token's own, two pairs in a row.

    Raises:
        UserError: there is none.
    """
    shown = [m for m in methods.values() if is_of_token(m.objective)]
    left_out = [m.label for m in methods.values() if not is_of_token(m.objective)]
    if not shown:
        raise UserError(
            "aspo/fig4 draws objectives whose c is a token's own, and there is none among "
            f"{', '.join(methods)}; add one, or leave the figure out"
        )
    columns, rows = min(2, len(shown)) * len(SIGNS), math.ceil(len(shown) / 2)
    labels = [textwrap.fill(method.label, TITLE_WIDTH) for method in shown]
    title = TITLE_LINE * (2 + max(label.count("\n") for label in labels))
    size = (0.9 + (PANEL + GAP) * columns, 0.5 + (PANEL + GAP + title) * rows)
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    spare, has_negative = list(panels.flat), False
    for method, label in zip(shown, labels, strict=True):
        for sign, name in SIGNS.items():
            axes = spare.pop(0)
            c = coefficient_surface(method, sign)
            has_negative |= bool((c < 0).any())
            image = surfaces.draw_surface(axes, c)
            axes.set_title(f"{label}\n{name}")
    for axes in spare:
        axes.set_axis_off()
    for column in panels.T:
        lowest = column[-1] if column[-1].axison else column[-2]
        lowest.set_xlabel(surfaces.OLD)
        lowest.tick_params(labelbottom=True)
    for axes in panels[:, 0]:
        axes.set_ylabel(surfaces.NEW)
    surfaces.add_color_bar(figure, image, panels, shrink=min(0.85, 2 / rows), pad=0.02)
    note = NOTE + ("; dotted: c < 0" if has_negative else "") + assumptions(shown)
    if left_out:
        note += f"\nleft out, since all tokens of a response decide on c: {', '.join(left_out)}"
    style.note(figure, note)
    return figure
