"""Versions and machines of the steps: what all share once, what differs by step."""

import re
from collections.abc import Iterator

from respo.provenance.environments import FIRST, Environment, short


def version_lines(
    environments: dict[str, list[Environment]], of_one: bool, here: str | None = None
) -> Iterator[str]:
    """Yield a line for each key of the environments.

    Args:
        environments: of a result, by step; several where a step was made in several.
        of_one: they are of one result, and not of the many that a table shows.
        here: the revision of this checkout, to be compared with theirs.
    """
    steps = {step: found for step, found in environments.items() if found}
    keys = {key for found in steps.values() for one in found for key in one}
    for key in sorted(
        keys, key=lambda key: (FIRST.index(key) if key in FIRST else len(FIRST), key)
    ):
        yield f"{key}: {_values(key, steps)}"
        if key == "code" and here:
            codes = {one[key] for found in steps.values() for one in found if key in one}
            yield f"this checkout: {_checkout(codes, here)}"
    for step, found in steps.items():
        if len(found) > 1 and of_one:
            yield f"{step} was made in {len(found)} environments, one after the other"


def _checkout(codes: set[str], here: str) -> str:
    """Compare the revision of this checkout with those that made a result."""
    if not re.fullmatch("[0-9a-f]{40}(-dirty)?", here):
        return f"its revision is not known ({here})"
    if here not in codes:
        return f"another revision, {short('code', here)}"
    if here.endswith("-dirty"):
        return "the same revision, but its changes may be others"
    return "the same" if len(codes) == 1 else "the same as some"


def _values(key: str, steps: dict[str, list[Environment]]) -> str:
    """Return the value of a key, and where it differs of which step each is."""
    values: dict[str, list[str]] = {}
    for step, found in steps.items():
        for one in found:
            if key in one:
                places = values.setdefault(str(one[key]), [])
                if step not in places:
                    places.append(step)
    if len(values) == 1:
        return short(key, next(iter(values)))
    return "; ".join(f"{short(key, v)} ({', '.join(places)})" for v, places in values.items())
