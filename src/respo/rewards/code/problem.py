"""The tests of a problem, as its row of a benchmark has them."""

import json
from functools import lru_cache
from typing import NamedTuple


class Case(NamedTuple):
    """What a program is given in one test and what is expected of it."""

    input: str
    output: str


class Problem(NamedTuple):
    """The tests of a program that reads standard input (``function`` is None), or of a function.

    A function, or method of a class `Solution`, gets one JSON value per line of the input for each
    of its arguments; the output is JSON.
    """

    function: str | None
    cases: tuple[Case, ...]


# The responses to one problem follow each other, and its tests can have megabytes.
@lru_cache(maxsize=2)
def read_problem(text: str) -> Problem:
    """Read ``{"function": null | name, "tests": [{"input": text, "output": text}, ...]}``.

    Raises:
        ValueError: the text is anything else, or has no tests; the message says what is wrong.
    """
    try:
        content = json.loads(text)
    except ValueError as error:
        raise ValueError(f"the tests of a code problem are not JSON: {error}") from None
    if not isinstance(content, dict) or set(content) != {"function", "tests"}:
        raise ValueError("the tests of a code problem are not an object of `function` and `tests`")
    function, tests = content["function"], content["tests"]
    if function is not None and not (isinstance(function, str) and function.isidentifier()):
        raise ValueError(f"the tests of a code problem name the function {function!r}, no name")
    if not isinstance(tests, list) or not tests:
        raise ValueError("the tests of a code problem have no test")
    return Problem(function, tuple(map(_read_case, tests)))


def _read_case(test: object) -> Case:
    if (
        not isinstance(test, dict)
        or set(test) != {"input", "output"}
        or not all(isinstance(text, str) for text in test.values())
    ):
        raise ValueError("a test of a code problem is not an object of two texts, input and output")
    return Case(**test)
