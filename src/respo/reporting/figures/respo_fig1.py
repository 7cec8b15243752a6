"""Kernels: the coefficient against log W by sign of the advantage. ReSPO, Fig. 1."""

import math

from matplotlib.figure import Figure

from respo.config.schema import Method
from respo.objectives.one_token import PROB_OLD
from respo.reporting import style
from respo.reporting.kernels import (
    SIGNS,
    assumptions,
    curve,
    depends_on_probability,
    draw_curve,
    frame,
    top,
)
from respo.reporting.results import Results
from respo.reporting.surfaces import OLD

NOTE = (
    "dots mark the two sides of a jump; all ratios are those of a response of one token; "
    "A is 1 or −1"
)


def draw(results: Results) -> Figure:
    """Draw the methods of the study."""
    return draw_methods(results.study.methods)


def draw_methods(methods: dict[str, Method]) -> Figure:
    """Draw a panel per sign of the advantage, a line per kernel.

    Methods that differ in something else than their kernel share the line of the first of them.
    """
    same: dict[str, list[str]] = {}
    for name, method in methods.items():
        kernel = repr((method.objective, sorted(method.parameters.items())))
        same.setdefault(kernel, []).append(name)
    shown = {names[0]: methods[names[0]] for names in same.values()}
    of_all = style.lines(methods)
    lines = style.nested({name: of_all[name] for name in shown})
    entries = {method.label: lines[name] for name, method in shown.items()}
    width = 7.0
    rows = style.legend_rows(entries, width)
    figure = Figure(figsize=(width, 2.6 + 0.3 * rows), layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    curves = {(sign, name): curve(method, sign) for sign in SIGNS for name, method in shown.items()}
    end = top(curves.values())
    for axes, sign in zip(panels, SIGNS, strict=True):
        frame(axes, sign, end)
        for name, method in shown.items():
            draw_curve(axes, curves[sign, name], label=method.label, **lines[name])
    panels[0].set_ylabel("coefficient c")
    style.legend(figure, entries)
    note = f"c is shown up to {end:g}; {NOTE}" + _fixed(list(methods.values()))
    for names in same.values():
        if len(names) > 1:
            labels = [methods[name].label for name in names]
            note += f"; the same as {labels[0]}: {', '.join(labels[1:])}"
    style.note(figure, note)
    return figure


def _fixed(methods: list[Method]) -> str:
    limited = ", ".join(m.label for m in methods if depends_on_probability(m))
    limit = ""
    if limited:
        end = -math.log(PROB_OLD)
        limit = f"; {OLD} = {PROB_OLD:g}, so that log W ends at {end:.1f} (bar): {limited}"
    return limit + assumptions(methods)
