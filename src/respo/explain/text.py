"""What `respo.provenance` tells, as text in sections."""

from collections.abc import Iterator
from typing import Any

from respo.explain.configuration import of_run, of_runs, value_text
from respo.explain.sources import (
    HASH,
    input_lines,
    map_lines,
    origin_lines,
    source_lines,
    state_text,
)
from respo.explain.versions import version_lines

Told = dict[str, Any]
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
        ("Sources", source_lines(told, everything)),
        ("Rows and columns", map_lines(told, everything)),
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
    yield from of_run(told.get("settings", {}), everything)
    yield from of_runs(told.get("configurations", {}), everything)
    if sampling := told.get("sampling"):
        yield "sampling: " + ", ".join(f"{key} {value_text(v)}" for key, v in sampling.items())
    named = any("verifier" in one for one in told.get("environments", {}).get("scoring", ()))
    if (verifier := told.get("verifier")) and not named:  # else it stands among the versions
        yield "verifier: " + " ".join(str(value) for value in verifier.values())


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
        yield f"{source['what']}: {path}, {sha256}{state_text(source['state'])}"
        yield from (f"  {line}" for line in origin_lines(origins.get(source["what"]) or {}))
    if rows := told.get("rows"):
        yield f"this file: {(rows['sha256'] or 'missing')[:HASH]}"
        yield from origin_lines(rows)
    if told["kind"] == "initial" and not told.get("made_from"):
        yield from origin_lines(told["initial"])
    yield from input_lines(told)
    for key, value in told.get("recorded", {}).items():
        yield f"{key}: {value_text(value)}"


def _below(path: str, told: Told) -> str:
    """Leave out the study's folder, which the head tells."""
    return path.removeprefix(f"{told['study']['folder']}/") if "study" in told else path


def _versions(told: Told) -> Iterator[str]:
    yield from version_lines(
        told.get("environments", {}), "differing" not in told, told.get("code_here")
    )


def _times(told: Told) -> Iterator[str]:
    training = told.get("training", {})
    for step, seconds in told.get("durations", {}).items():
        if seconds is not None:
            counted = told.get("counted", {}).get(step)
            many = f", sum of {counted}" if counted and counted > 1 else ""
            yield f"{step} ({'work' if step in WORK else 'job'}{many}): {_duration(seconds)}"
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
