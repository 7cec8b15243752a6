"""What the page shows, as JSON: names, and what its parts read."""

from typing import Any

from respo.config.study import BASELINE, ResolvedStudy
from respo.reporting import labels, notes, style
from respo.reporting.page import curves, grid
from respo.reporting.page.make import command
from respo.reporting.page.samples import RULE
from respo.reporting.results import Results


def collect(results: Results) -> dict[str, Any]:
    """Read a study's results, as far as they are there.

    Raises:
        UserError: a damaged or misplaced file.
    """
    study = results.study
    data = {
        "study": study.name,
        "title": study.study.title,
        "command": command(results),
        "models": {name: model.label for name, model in study.models.items()},
        "methods": _methods(study),
        "benchmarks": {
            name: {
                "label": benchmark.label,
                "samples": study.samples(name),
                "verifier": labels.verifier(benchmark.verifier),
            }
            for name, benchmark in study.benchmarks.items()
        },
        "notes": {"error": notes.BOOTSTRAP, "samples": RULE},
        **grid.collect(results),
        "curves": curves.collect(results),
    }
    # Last: now every file has been read.
    synthetic = notes.SYNTHETIC if results.synthetic else ""
    return data | {"made_from": results.digest(), "synthetic": synthetic}


def _methods(study: ResolvedStudy) -> dict[str, dict[str, Any]]:
    """Name the methods, with the lines that they have in every figure."""
    lines = style.lines(study.methods)
    named = {
        name: {
            "label": method.label,
            "color": lines[name]["color"],
            "dash": _dash(lines[name]["linestyle"]),
            "width": lines[name].get("linewidth", 1.5),
        }
        for name, method in study.methods.items()
    }
    return named | {BASELINE: {"label": "as it comes"}}


def _dash(linestyle: str | tuple[int, tuple[float, ...]]) -> str:
    """Return a line style of matplotlib, whose unit is the line's width, as SVG has it."""
    return "" if isinstance(linestyle, str) else " ".join(f"{2 * part:g}" for part in linestyle[1])
