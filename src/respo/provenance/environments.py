"""The environments that results were made in: versions, code, machine."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from respo.provenance.shapes import mapping, sequence, texts

Environment = dict[str, str]
# In this order; packages follow.
FIRST = ("code", "respo", "python", "machine", "processor", "device")


def run_made_from(train: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hashes of what a run was made from, and the environments that it was made in.

    An environment is told once, in the order of the first update made in it: how often a run was
    continued, and when, makes no difference to its results.

    Args:
        train: what its `train.json` says.
    """
    hashes = {key: train[key] for key in ("data_sha256", "initial_sha256") if key in train}
    return {**hashes, "environments": environments(train)}


def environments(train: Mapping[str, Any]) -> list[Environment]:
    """Return versions, machine and device of the starts of a run, each that differs once.

    A start that the next one did not go on from has made nothing of the result.
    """
    starts = [mapping(start) for start in sequence(train.get("starts"))]
    made = [
        start
        for start, after in zip(starts, [*starts, {}][1:], strict=True)
        if start.get("update") != after.get("update")
    ]
    # A run of version 0.1.0 tells of its last start only.
    told = [_of_start(start) for start in made or [dict(train)]]
    return [one for place, one in enumerate(told) if one and one not in told[:place]]


def _of_start(start: Mapping[str, Any]) -> Environment:
    device = {"device": str(start["device"])} if start.get("device") else {}
    return {**texts(start.get("versions")), **device}


def of_scores(made_from: Mapping[str, Any]) -> dict[str, list[Environment]]:
    """Return the environments of generation and scoring that scores tell."""
    generations = mapping(made_from.get("generations"))
    return {
        "generation": of_generations(generations),
        "scoring": [_with_verifier(made_from)] if made_from.get("environment") else [],
    }


def of_generations(made_from: Mapping[str, Any]) -> list[Environment]:
    """Return the environment of the last generation, and of earlier ones that were taken over."""
    device = {key: str(made_from[key]) for key in ("device", "engine") if made_from.get(key)}
    found = [made_from.get("environment"), *sequence(made_from.get("earlier"))]
    return [{**texts(one), **device} for one in found if one]


def of_cell(made_from: Mapping[str, Any]) -> dict[str, list[Environment]]:
    """Return the environments of a cell by step."""
    of_run = sequence(mapping(made_from.get("run")).get("environments"))
    own = texts(made_from.get("environment"))
    return {
        "training": [texts(one) for one in of_run],
        **of_scores(mapping(made_from.get("scores"))),
        "cell": [own] if own else [],
    }


def _with_verifier(made_from: Mapping[str, Any]) -> Environment:
    verifier = mapping(made_from.get("verifier"))
    named = " ".join(str(verifier[key]) for key in ("name", "version") if key in verifier)
    return {**texts(made_from.get("environment")), **({"verifier": named} if named else {})}


def differing(told: Iterable[tuple[str, Environment]]) -> dict[str, dict[str, list[str]]]:
    """Return the keys in which environments differ.

    Args:
        told: pairs of what was made and its environment. One may stand twice, with another
            environment.

    Returns:
        For each such key what has which value; a key that an environment lacks is no difference.
    """
    found: dict[str, dict[str, list[str]]] = {}
    for name, environment in told:
        for key, value in environment.items():
            names = found.setdefault(key, {}).setdefault(value, [])
            if name not in names:
                names.append(name)
    return {key: values for key, values in _ordered(found) if len(values) > 1}


def short(key: str, value: str) -> str:
    """Return a value to be read by people: of a revision the digits that git needs."""
    match = re.fullmatch("([0-9a-f]{12})[0-9a-f]*(-dirty)?", value)
    if key != "code" or not match:
        return value
    return match[1] + (" with changes that are not committed" if match[2] else "")


def _ordered(found: dict[str, Any]) -> list[tuple[str, Any]]:
    place = {key: index for index, key in enumerate(FIRST)}
    return sorted(found.items(), key=lambda item: (place.get(item[0], len(FIRST)), item[0]))
