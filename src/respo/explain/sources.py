"""What a table, figure, page, report or study was made from, and which numbers are whose."""

from collections.abc import Iterator
from typing import Any

Told = dict[str, Any]
HASH = 12  # hex digits that are shown


def state_text(state: str) -> str:
    """Say whether a file is what it was."""
    return {
        "unchanged": "unchanged",
        "changed": "CHANGED since",
        "missing": "not there",
        "no file": "no regular file, and was not read",
        "listed": "unchanged by its SHA256SUMS (too large to read here)",
        "not compared": "not compared (too large to read here, and no SHA256SUMS)",
        "no record": "not compared (no hash recorded)",
    }[state]


def source_lines(told: Told, everything: bool) -> Iterator[str]:
    """Yield the sources: how many, whether they are unchanged, and with `everything` each."""
    for name, state in told.get("contents", {}).items():
        yield f"{name}: {state_text(state)}"
    if "methods" in told:
        yield f"the formulas and parameters of {', '.join(told['methods'])}, {told['digits']}"
    elif "digits" in told:
        yield f"made from results {told['digits']}"
    if "there" in told:
        yield f"{told['there']} of {told['expected']} runs and cells are there"
    if sources := told.get("sources"):
        yield from _files(sources, everything)


def _files(sources: Told, everything: bool) -> Iterator[str]:
    files = sources["files"]
    states = [file["state"] for file in files.values()]
    if any(states):
        runs = f", of {_count(len(sources['by_run']), 'run')}" if sources["by_run"] else ""
        yield f"{_count(len(files), 'file')}{runs}: {_states(states)}"
    if not everything:
        return
    if any(name.endswith("/metrics.parquet") for name in files):
        yield "(the hashes of metrics.parquet leave its columns of times out)"
    for name, file in files.items():
        sha256 = f", {file['sha256'][:HASH]}" if file["sha256"] else ""
        yield name + sha256 + (f", {state_text(file['state'])}" if file["state"] else "")


def _states(states: list[str]) -> str:
    if all(state == "unchanged" for state in states):
        return "all unchanged since"
    words = {
        "unchanged": "unchanged since",
        "changed": "CHANGED since",
        "missing": "not there any more",
        "no file": "no regular file",
    }
    return ", ".join(f"{n} {text}" for state, text in words.items() if (n := states.count(state)))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def map_lines(told: Told, everything: bool) -> Iterator[str]:
    """Yield which benchmark and which run are behind the words of a table."""
    shown = told.get("map", {})
    for label, name in shown.get("columns", {}).items():
        yield f"{label}: {name}"
    rows = shown.get("rows", [])
    for row in rows if everything else rows[-1:]:
        update = f", update {row['update']}" if "update" in row else ""
        label = f"{row['model']}, {row['method']}, N = {row['staleness']}, seed {row['seed']}"
        yield f"{label}{update}: {row['path']}"
    if len(rows) > 1 and not everything:
        yield f"and {len(rows) - 1} more (--all lists them)"


def input_lines(told: Told) -> Iterator[str]:
    """Yield rows and weights that the sources were made from, and how many of them."""
    for one in told.get("inputs", ()):
        partly = f" in {one['count']} of {one['of']}" if one["count"] < one["of"] else ""
        yield (
            f"{one['what']} {one['name']}: {one['sha256'][:HASH]}{partly}, "
            f"{state_text(one['state'])}"
        )
        yield from (f"  {line}" for line in origin_lines(one))
        if "verifier" in one:
            yield f"  verifier {one['verifier']}"


def origin_lines(told: Told) -> Iterator[str]:
    """Yield where rows or weights are from, with commits and hashes of files."""
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
