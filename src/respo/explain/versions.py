"""Versions and machines of the steps: what all share once, what differs by step."""

from collections.abc import Iterator

from respo.provenance.environments import FIRST, Environment, short


def version_lines(environments: dict[str, list[Environment]], of_one: bool) -> Iterator[str]:
    """Yield a line for each key of the environments.

    Args:
        environments: of a result, by step; several where a step was made in several.
        of_one: they are of one result, and not of the many that a table shows.
    """
    steps = {step: found for step, found in environments.items() if found}
    keys = {key for found in steps.values() for one in found for key in one}
    for key in sorted(
        keys, key=lambda key: (FIRST.index(key) if key in FIRST else len(FIRST), key)
    ):
        yield f"{key}: {_values(key, steps)}"
    for step, found in steps.items():
        if len(found) > 1 and of_one:
            yield f"{step} was made in {len(found)} environments, one after the other"


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
