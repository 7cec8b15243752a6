"""Settings of a run, or of the runs that a table shows: what differs from the defaults, with these.

With `everything`, every setting with a mark. A setting is told once.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

Told = dict[str, Any]
ON_LINE = 4  # settings
# Without a default, and told also where not everything is asked for.
MAIN = (
    "training.updates",
    "training.mini_batch",
    "training.rollouts_per_prompt",
    "staleness",
    "seed",
    "training.optimizer.learning_rate",
    "training.optimizer.warmup_updates",
    "training.temperature",
    "training.loss_aggregation",
    "model.max_prompt_tokens",
    "model.max_response_tokens",
)


def of_run(settings: Told, everything: bool) -> Iterator[str]:
    """Yield the settings of a run, see `respo.provenance.settings.settings`."""
    if "objective" in settings:
        yield from _objective(settings["objective"], everything)
    if "entries" in settings:
        yield from _entries(settings["entries"], everything)
        if not everything:
            yield "all else is as by default, or of the model (--all lists every setting)"


def of_runs(configurations: Told, everything: bool) -> Iterator[str]:
    """Yield the settings of many runs, see `respo.provenance.of_sources.of_files`."""
    if not configurations.get("runs"):
        return
    count, runs = configurations["unchanged"], configurations["runs"]
    yield (
        f"of {count} runs"
        if count == runs
        else f"of {count} of {runs} runs; that of the others has changed or is not there"
    )
    for method, objective in configurations["objectives"].items():
        first, *rest = _objective(objective, everything)
        yield f"{method}: {first}"
        yield from rest
    yield from _entries(configurations["entries"], everything)
    for key, values in configurations["varying"].items():
        if everything or key in MAIN or not key.startswith(("model.", "train_data.")):
            parts = (f"{value_text(one['value'])} in {_runs(one['runs'])}" for one in values)
            yield f"{key}: {'; '.join(parts)}"


def _runs(count: int) -> str:
    return f"{count} run{'' if count == 1 else 's'}"


def _objective(objective: Told, everything: bool) -> Iterator[str]:
    differs = {entry["key"]: entry["default"] for entry in objective["differs"]}
    parameters = objective["parameters"]
    known = objective["code_now"] is not None
    same = ", as here" if objective["code_now"] == objective["code"] else ""
    text = f"objective {objective['name']}"
    shown = parameters if everything or not known else differs
    marked = [
        f"{key} {value_text(parameters[key])}" + (_mark(key, differs, everything) if known else "")
        for key in shown
    ]
    rest = len(parameters) - len(shown)
    if known and rest:
        marked.append("all others as published" if marked else "all parameters as published")
    formula = f"formula {objective['code']}{same}"
    if len(marked) < 2:
        yield ", ".join([text, *marked, formula])
        return
    yield f"{text}, {formula}"
    yield from (f"  {line}" for line in marked)


def _mark(key: str, differs: Told, everything: bool) -> str:
    if key in differs:
        return f" (published {value_text(differs[key])})"
    return " (as published)" if everything else ""


def _entries(entries: Iterable[Told], everything: bool) -> Iterator[str]:
    chosen = []
    for entry in entries:
        plain = "default" not in entry and "from" not in entry
        if plain and not everything:
            if entry["key"] in MAIN:
                chosen.append(f"{entry['key'].rpartition('.')[2]} {value_text(entry['value'])}")
        elif everything or "from" in entry or entry["value"] != entry["default"]:
            yield f"{entry['key']} {value_text(entry['value'])} ({', '.join(_marks(entry))})"
    for at in range(0, len(chosen), ON_LINE):
        head = "chosen, without a default: " if at == 0 else "  "
        yield head + ", ".join(chosen[at : at + ON_LINE])


def _marks(entry: Told) -> Iterator[str]:
    if "default" not in entry:
        yield "no default"
    elif entry["value"] == entry["default"]:
        yield "the default"
    else:
        yield f"default {value_text(entry['default'])}"
    if "from" in entry:
        yield f"by {entry['from']}; the study has {value_text(entry['study'])}"


def value_text(value: Any) -> str:
    """Write a setting on one line."""
    return value if isinstance(value, str) and value.isprintable() else json.dumps(value)
