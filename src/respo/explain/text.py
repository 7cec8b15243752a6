"""What `respo.provenance` tells, as text in sections."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from respo.explain.versions import version_lines

Told = dict[str, Any]
HASH = 12  # hex digits that are shown
ON_LINE = 4  # settings
NAMED = 5  # of many files
# Steps that tell themselves how long they worked; of the others, the whole job was timed.
WORK = ("warm start", "initial weights", "training")


def lines(told: Told, everything: bool = False) -> Iterator[str]:
    """Yield the text.

    Args:
        told: of `respo.provenance.read`.
        everything: every setting and source, not only those that differ.
    """
    yield from _head(told)
    for title, body in (
        ("Configuration", _configuration(told, everything)),
        ("Made from", _made_from(told)),
        ("Sources", _sources(told, everything)),
        ("Versions and machine", _versions(told)),
        ("Time", _times(told)),
        ("Make it again", _commands(told)),
        ("Note", told["warnings"]),
    ):
        found = list(body)
        if found:
            yield ""
            yield title
            yield from (f"  {part}" for line in found for part in line.splitlines())


def _head(told: Told) -> Iterator[str]:
    yield f"{told['path']}: {_what(told)}"
    if study := told.get("study"):
        title = " ".join(study["title"].split())
        yield f"  study {study['name']}: {title}, in {study['folder']}"
    address = told.get("run") or told.get("address")
    if address:
        text = f"  model {address['model']}, method {address['method']}, "
        text += f"N = {address['staleness']}, seed {address['seed']}"
        update = told.get("update", told.get("address", {}).get("update"))
        yield text + (f", update {update}" if update is not None else "")
    if numbers := told.get("numbers"):
        yield f"  {_result(numbers)}"


def _what(told: Told) -> str:
    kind, name = told["kind"], told.get("name", "")
    if kind in ("cell", "scores", "generations"):
        name = name or told.get("address", {}).get("benchmark", "")
        return f"{kind} of benchmark {name}" if name else kind
    if kind == "data":
        side = {"train": "training set", "held_out": "benchmark"}.get(told.get("side", ""), "rows")
        return f"{side} {name}".rstrip()
    words = {
        "page": "page to explore",
        "initial": "initial weights of model",
        "metrics": "metrics of a run",
        "branches": "statistics by branch of a run",
        "checkpoint": "checkpoint of a run",
    }
    return f"{words.get(kind, kind)} {name}".rstrip()


def _result(numbers: Told) -> str:
    parts = []
    if "pass_at_1" in numbers:
        error = f" ± {100 * numbers['standard_error']:.1f}" if "standard_error" in numbers else ""
        parts.append(f"pass@1 {100 * numbers['pass_at_1']:.1f}{error} %")
    if "problems" in numbers:
        parts.append(f"{numbers['problems']} problems x {numbers.get('samples', '?')} samples")
    return ", ".join(parts)


def _configuration(told: Told, everything: bool) -> Iterator[str]:
    settings = told.get("settings", {})
    if objective := settings.get("objective"):
        parameters = ", ".join(f"{k} {_value(v)}" for k, v in objective["parameters"].items())
        name = f"objective {objective['name']}" + (f" ({parameters})" if parameters else "")
        same = objective["code_now"] == objective["code"]
        yield f"{name}, formula {objective['code']}{', as here' if same else ''}"
        for entry in objective["differs"]:
            yield f"  {entry['key']} {_value(entry['value'])}: {_default(entry['default'])}"
    if "differs" in settings:
        main = [f"{key} {_value(value)}" for key, value in settings.get("main", {}).items()]
        yield from (", ".join(main[at : at + ON_LINE]) for at in range(0, len(main), ON_LINE))
        for entry in settings["differs"]:
            yield f"{entry['key']} {_value(entry['value'])}: {_default(entry['default'])}"
        for entry in settings["beside_study"]:
            yield (
                f"{entry['key']} {_value(entry['value'])}: by {entry['from']}; the study has "
                f"{_value(entry['study'])}"
            )
        chosen = settings["chosen"]
        if everything:
            yield from (f"{key} {_value(value)}" for key, value in chosen.items())
        else:
            yield "--all lists every setting that the study's files chose"
    if sampling := told.get("sampling"):
        yield "sampling: " + ", ".join(f"{key} {_value(v)}" for key, v in sampling.items())
    if verifier := told.get("verifier"):
        yield "verifier: " + " ".join(str(value) for value in verifier.values())


def _default(value: Any) -> str:
    return f"default {_value(value)}"


def _value(value: Any) -> str:
    return value if isinstance(value, str) and value.isprintable() else json.dumps(value)


def _made_from(told: Told) -> Iterator[str]:
    origins = {
        "training set": told.get("training_set"),
        "benchmark": told.get("benchmark_rows"),
        "initial weights": told.get("initial"),
        "weights": told.get("initial"),
    }
    for source in told.get("made_from", ()):
        sha256 = f"{source['sha256'][:HASH]}, " if source["sha256"] else ""
        path = _below(source["path"], told)
        yield f"{source['what']}: {path}, {sha256}{_state(source['state'])}"
        yield from (f"  {line}" for line in _origin(origins.get(source["what"]) or {}))
    if rows := told.get("rows"):
        yield f"this file: {(rows['sha256'] or 'missing')[:HASH]}"
        yield from _origin(rows)
    if told["kind"] == "initial" and not told.get("made_from"):
        yield from _origin(told["initial"])
    for key, value in told.get("recorded", {}).items():
        yield f"{key}: {_value(value)}"


def _below(path: str, told: Told) -> str:
    """Leave out the study's folder, which the head tells."""
    return path.removeprefix(f"{told['study']['folder']}/") if "study" in told else path


def _origin(told: Told) -> Iterator[str]:
    if "origin" not in told:
        return
    version = f", version {told['version']}" if "version" in told else ""
    yield f"{told['origin']}{version}"
    if told.get("revision"):
        yield f"commit {told['revision']}"
    files = told.get("files")
    if isinstance(files, dict):
        for part in files.get("parts") or [files]:
            if part.get("commit"):
                yield f"commit {part['commit']}"
            hashes = part.get("sha256")
            if isinstance(hashes, dict):
                yield from (f"{name}, {sha256[:HASH]}" for name, sha256 in hashes.items())
    if told.get("configuration_state") == "changed":
        yield "its configuration has changed since"


def _state(state: str) -> str:
    return {
        "unchanged": "unchanged",
        "changed": "CHANGED since",
        "missing": "not there",
        "no file": "no regular file, and was not read",
        "listed": "unchanged by its SHA256SUMS (too large to read here)",
        "not compared": "not compared (too large to read here, and no SHA256SUMS)",
        "no record": "not compared (no hash recorded)",
    }[state]


def _sources(told: Told, everything: bool) -> Iterator[str]:
    if "contents" in told:
        for name, state in told["contents"].items():
            yield f"{name}: {_state(state)}"
        return
    if "methods" in told:
        yield f"the formulas and parameters of {', '.join(told['methods'])}, {told['digits']}"
    elif "digits" in told:
        yield f"made from results {told['digits']}"
    if "there" in told:
        yield f"{told['there']} of {told['expected']} runs and cells are there"
    sources = told.get("sources")
    if sources is None:
        return
    files, runs = sources["files"], sources["by_run"]
    states = [file["state"] for file in files.values()]
    recorded = [state for state in states if state]
    if recorded:
        same = recorded.count("unchanged")
        words = "all unchanged since" if same == len(recorded) else f"{same} unchanged since"
        yield f"{len(files)} files, of {len(runs)} runs, {words}"
    if everything:
        if any(name.endswith("/metrics.parquet") for name in files):
            yield "(the hashes of metrics.parquet leave its columns of times out)"
        for name, file in files.items():
            sha256 = f", {file['sha256'][:HASH]}" if file["sha256"] else ""
            yield name + sha256 + (f", {_state(file['state'])}" if file["state"] else "")
        return
    for name in _some(runs):
        count = len(runs[name])
        yield f"{name}: {count} file{'s' if count > 1 else ''}"
    if len(runs) > NAMED:
        yield f"and {len(runs) - NAMED} more runs (--all lists every file)"


def _some(names: Iterable[str]) -> list[str]:
    return list(names)[:NAMED]


def _versions(told: Told) -> Iterator[str]:
    yield from version_lines(
        told.get("environments", {}), "differing" not in told, told.get("code_here")
    )


def _times(told: Told) -> Iterator[str]:
    training = told.get("training", {})
    for step, seconds in told.get("durations", {}).items():
        if seconds is not None:
            yield f"{step} ({'work' if step in WORK else 'job'}): {_duration(seconds)}"
    for start in training.get("starts", ()):
        if "at" in start:
            where = f"after update {start['update']}" if start.get("update") else "from the start"
            yield f"training was started {start['at']} {where}"
    if "ended" in training:
        yield f"training ended {training['ended']}"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes = round(seconds / 60)
    return (
        f"{seconds / 60:.1f} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60:02d} min"
    )


def _commands(told: Told) -> Iterator[str]:
    if "command" in told:
        if told.get("synthetic"):
            yield "no training made these results; the whole folder was made up by"
        yield told["command"]
    if "redraw" in told:
        yield f"or, from what lies there: {told['redraw']}"
