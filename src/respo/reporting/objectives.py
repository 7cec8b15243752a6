"""`python -m respo.reporting.objectives`: write docs/objectives.md and its pictures.

Formulas come from the docstrings of the objectives, values from config/methods, curves from the
code that trains, so the page cannot contradict them; a test fails when it is out of step. Each
picture carries a hash of the data that it shows, in the page and in the file.
"""

import argparse
import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from respo.cli import command
from respo.config.schema import Method, Overrides
from respo.files import write_text
from respo.objectives import is_sequence_level
from respo.objectives.registry import get
from respo.reporting import kernels, style, surfaces
from respo.reporting.choices import is_of_token
from respo.reporting.methods import all_methods
from respo.reporting.text import markdown_table

DOCS = Path(__file__).parents[3] / "docs"
PAGE = DOCS / "objectives.md"
PICTURES = DOCS / "images" / "objectives"
DPI = 150
# Lines of the methods beside the first.
VARIANTS = [
    {"color": color, "linestyle": dashes}
    for dashes in ("-", (0, (4, 1.5)))
    for color in (style.VERMILION, style.GREEN, style.PURPLE, style.ORANGE, style.GRAPHITE)
]
COMMAND = "python -m respo.reporting.figure"

INTRODUCTION = """\
# Objectives

<!-- Written by `python -m respo.reporting.objectives`; edit the docstrings and config/methods. -->

Every objective is a coefficient c of the gradient, c · A · ∇ log π, summed over tokens; a method
of `config/methods` is an objective with parameters. This page is generated from both.

Symbols: π and π_old are the probabilities of a token now and when it was sampled, r = π / π_old
their ratio, W the product of a response's ratios, s = W^(1/T) their geometric mean over its T
tokens, A the advantage, H the entropy in nats.

Pictures: c against log W for a response of one token, where r, s and W are the same; dots are the
two sides of a jump. The thick line is the first method of the table; thin ones, named below, are
the others, without those of the same kernel. Where c is a token's own, that of the first method
over (π_old, π) stands beside it: the lighter the larger, hatched 0, where the gradient is gone. If
more than the ratio matters, the curves are those of π_old = {prob_old:g} and end where π = 1 (a
bar). A is 1 or −1, the entropy {entropy:g} nat; what
adapts to a mini-batch stands at its start.
"""


@dataclass(frozen=True)
class Section:
    """An objective with the methods that use it, the one of its own name first."""

    objective: str
    methods: dict[str, Method]

    @property
    def main(self) -> Method:
        """The method that the picture is about."""
        return next(iter(self.methods.values()))

    @cached_property
    def distinct(self) -> list[Method]:
        """The methods without those whose kernel repeats that of an earlier one."""
        found: dict[str, Method] = {}
        for method in self.methods.values():
            found.setdefault(json.dumps(method.parameters, sort_keys=True), method)
        return list(found.values())

    @cached_property
    def curves(self) -> dict[int, list[kernels.Curve]]:
        """By sign, the kernels of the distinct methods."""
        return {s: [kernels.curve(m, s) for m in self.distinct] for s in kernels.SIGNS}

    @cached_property
    def surfaces(self) -> dict[int, np.ndarray]:
        """By sign, c over (pi_old, pi) of the main method; empty if it is not a token's own."""
        if not is_of_token(self.objective):
            return {}
        return {s: kernels.coefficient_surface(self.main, s) for s in kernels.SIGNS}

    def digest(self) -> str:
        """Identify the data of the picture."""
        curves = [c for sign in kernels.SIGNS for c in self.curves[sign]]
        arrays = [array for c in curves for array in (c.log_w, c.coefficient)]
        return kernels.digest([*arrays, *self.surfaces.values()])


def sections() -> list[Section]:
    """Read config/methods and group it by objective, token level first."""
    by_objective: dict[str, dict[str, Method]] = {}
    for name, method in all_methods().items():
        by_objective.setdefault(method.objective, {})[name] = method
    return [
        Section(objective, dict(sorted(group.items(), key=lambda item: _rank(objective, item[0]))))
        for objective, group in sorted(by_objective.items(), key=lambda item: _order(item[0]))
    ]


def _order(objective: str) -> tuple[bool, bool, str]:
    # Many formulas refer to GRPO's.
    return is_sequence_level(objective), objective != "grpo", objective


def _rank(objective: str, name: str) -> tuple[bool, str]:
    return name.replace("-", "_") != objective, name


def draw(section: Section) -> Figure:
    """Draw a section's kernels and its surfaces, if it has any."""
    columns = 4 if section.surfaces else 2
    width = 7.6 if section.surfaces else 3.7
    lines = [{"color": style.BLUE, "linewidth": 1.8, "zorder": 4}]
    lines += [{**variant, "linewidth": 0.9, "zorder": 2} for variant in VARIANTS]
    entries = {m.label: line for m, line in zip(section.distinct, lines, strict=False)}
    below = 0.2 * style.legend_rows(entries, width) if len(entries) > 1 else 0
    figure = Figure(figsize=(width, 1.95 + below), layout="constrained")
    panels = figure.subplots(1, columns, width_ratios=[1.15, 1.15, 1, 1][:columns])
    end = kernels.top(curve for curves in section.curves.values() for curve in curves)
    for axes, sign in zip(panels, kernels.SIGNS, strict=False):
        kernels.frame(axes, sign, end)
        for curve, line in zip(section.curves[sign], entries.values(), strict=True):
            kernels.draw_curve(axes, curve, **line)
        axes.set_xticks([-4, -2, 0, 2, 4])
        axes.set_yticks(range(int(end) + 1))
    panels[0].set_ylabel("coefficient c")
    panels[1].set_yticklabels([])
    for axes, (sign, c) in zip(panels[2:], section.surfaces.items(), strict=True):
        image = surfaces.draw_surface(axes, c)
        axes.set(title=kernels.SIGNS[sign], xlabel=surfaces.OLD)
    if len(entries) > 1:
        style.legend(figure, entries, below=True)
    if section.surfaces:
        panels[2].set_ylabel(surfaces.NEW)
        panels[3].set_yticklabels([])
        surfaces.add_color_bar(figure, image, panels[2:], pad=0.03)
    return figure


def picture(section: Section) -> Path:
    """Return the file of a section's picture."""
    return PICTURES / f"{section.objective}.png"


def source(section: Section) -> str:
    """Return what the file of the picture says about its data."""
    return f"curves {section.digest()}"


def page(all_sections: list[Section]) -> str:
    """Return the text of the page."""
    parts = [INTRODUCTION.format(prob_old=kernels.PROB_OLD, entropy=kernels.ENTROPY)]
    parts.append("\n".join(_contents(all_sections)))
    level = None
    for section in all_sections:
        of_section = "Sequence level" if is_sequence_level(section.objective) else "Token level"
        if of_section != level:
            parts.append(f"## {of_section}")
            level = of_section
        parts += _section(section)
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _contents(all_sections: list[Section]) -> Iterator[str]:
    for section in all_sections:
        names = ", ".join(f"`{name}`" for name in section.methods)
        yield f"- [{section.objective}](#{section.objective}): {names}"


def _section(section: Section) -> Iterator[str]:
    docstring = inspect.getdoc(get(section.objective).function) or ""
    formula, prose = split_docstring(docstring)
    yield f"### {section.objective}"
    yield f"```text\nc: {formula}\n```" if formula else "No formula is documented."
    yield from map(escape, prose)
    path = picture(section).relative_to(DOCS).as_posix()
    yield f"![c of {section.objective} by sign of the advantage]({path})"
    yield f"<sub>{source(section)}</sub>"
    yield from _parameters(section)
    yield _methods(section)
    yield from _deviations(section)
    names = ",".join(section.methods)
    ids = ["respo/fig1"] + (["aspo/fig4"] if is_of_token(section.objective) else [])
    lines = [f"{COMMAND} {id_} --methods {names} --out {id_.split('/')[1]}.png" for id_ in ids]
    yield "```sh\n" + "\n".join(lines) + "\n```"


def split_docstring(docstring: str) -> tuple[str, list[str]]:
    """Split a docstring into its formula and its other paragraphs.

    The formula is the first paragraph, without `Return`, and those that follow it and begin with
    `name = `.
    """
    first, *others = docstring.split("\n\n")
    formula = [first.removeprefix("Return ")]
    while others and re.match(r"\w+ = ", others[0]):
        formula.append(others.pop(0))
    return "\n\n".join(formula), others


def escape(text: str) -> str:
    """Keep characters of a plain text from being Markdown; code keeps its own."""
    if text.startswith("    "):
        return text
    parts = text.split("`")
    parts[::2] = [re.sub(r"([*<\\])", r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def _parameters(section: Section) -> Iterator[str]:
    known = get(section.objective).parameters
    if known:
        rows = [[f"`{k}`", number(p.default), str(p)] for k, p in known.items()]
        yield markdown_table(["parameter", "default", "allowed"], rows, 3)


def _methods(section: Section) -> str:
    known = list(section.main.parameters)
    header = ["method", "label", *(f"`{key}`" for key in known), "options", "source"]
    rows = [
        [
            f"`{name}`",
            escape(method.label),
            *(number(method.parameters[key]) for key in known),
            _options(method),
            escape(method.source),
        ]
        for name, method in section.methods.items()
    ]
    if not any(row[-2] for row in rows):
        for row in (header, *rows):
            del row[-2]
    return markdown_table(header, rows, len(header))


def _options(method: Method) -> str:
    own = method.model_dump(include=set(Overrides.model_fields), exclude_none=True)
    return ", ".join(f"`{key}: {value}`" for key, value in own.items())


def number(value: float | None) -> str:
    """Write a parameter as YAML has it."""
    return "null" if value is None else f"{value:g}"


def _deviations(section: Section) -> Iterator[str]:
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, method in section.methods.items():
        groups.setdefault(tuple(method.deviations), []).append(f"`{name}`")
    if list(groups) == [()]:
        yield "Deviations from the source: none."
        return
    for deviations, names in groups.items():
        heading = f"Deviations of {', '.join(names)}: "
        yield heading + (" ".join(map(escape, deviations)) or "none.")


@command
def main() -> None:
    """Write the page and its pictures, and remove pictures of objectives that are gone."""
    argparse.ArgumentParser(
        prog="python -m respo.reporting.objectives", description=__doc__
    ).parse_args()
    all_sections = sections()
    with style.applied():
        for section in all_sections:
            style.write(draw(section), picture(section), source(section), DPI)
            print(picture(section))
    for path in set(PICTURES.glob("*.png")) - set(map(picture, all_sections)):
        path.unlink()
    write_text(PAGE, page(all_sections))
    print(PAGE)


if __name__ == "__main__":
    main()
