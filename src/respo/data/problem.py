"""A problem to be programmed, in the one form that all published forms are read into."""

import json
from dataclasses import dataclass
from typing import Any, NamedTuple

from respo.data.fields import NoAnswer


class Case(NamedTuple):
    """What a program is given, and what it is to answer."""

    input: str
    output: str


@dataclass(frozen=True)
class Problem:
    """A problem; `name` and `starter_code` can be empty.

    `function` is None for a program that reads standard input, else the function's name; its tests
    have a JSON value in each line of the input, and one as output.
    """

    name: str
    prompt: str
    starter_code: str
    function: str | None
    tests: list[Case]


def parsed(value: Any, what: str) -> Any:
    """Return what a text holds as JSON; anything that is no text stands for itself.

    Raises:
        ValueError: it is not JSON.
    """
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the {what} are not valid JSON ({error})") from None


def is_json(text: str) -> bool:
    """Tell whether a text is one JSON value."""
    try:
        json.loads(text, parse_int=str)  # of any number of digits, which Python limits
    except (ValueError, RecursionError):
        return False
    return True


def _is_text(value: Any) -> bool:
    """Tell whether a value is a text that can be written to a program."""
    try:
        return isinstance(value, str) and bool(value.isascii() or value.encode())
    except UnicodeEncodeError:  # half of a surrogate pair
        return False


def checked(function: str | None, tests: list[Case]) -> list[Case]:
    """Return the tests, whose values are texts and, those of a function, JSON.

    Raises:
        NoAnswer: they are not.
    """
    if not all(_is_text(text) for test in tests for text in test):
        raise NoAnswer("input or output of a test is not a text")
    if function is not None:
        if not function.isidentifier():
            raise NoAnswer(f"the function's name is {function!r}")
        for test in tests:
            if not all(map(is_json, [*test.input.split("\n"), test.output])):
                raise NoAnswer(f"a test of the function {function} is not JSON")
    return tests
