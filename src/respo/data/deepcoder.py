"""The forms of the DeepCoder-Preview-Dataset (Luo et al., 2025), whose parts differ.

- `lcbv5`: a list of tests as LiveCodeBench has them, with `starter_code` and `metadata.func_name`.
- `primeintellect`: a list of tests with `type`, `stdin_stdout` or `function_call`, and `fn_name`.
- `taco`: one object of `inputs`, `outputs` and, for functions, `fn_name`.
- `codeforces`: a list of inputs and outputs.

Functions of the middle two get their arguments as a list, and what they are to return stands in a
list of one, as in APPS; where that holds for all tests of a problem, the list is taken off. They
have no starter code: a head with the function's name is made. Lines of standard input or output
that stand in a list are joined.
"""

import json
from typing import Any

from respo.data import fields
from respo.data.fields import NoAnswer
from respo.data.problem import Case, Problem, checked, parsed

COLUMNS = ("problem", "tests")
OPTIONAL = ("starter_code", "metadata")
FUNCTIONAL = {"functional", "function_call"}


def date(values: dict[str, Any]) -> None:
    """Return nothing: the set has no dates."""


def problem(values: dict[str, Any]) -> Problem:
    """Read a problem.

    Raises:
        NoAnswer: it has no usable tests.
        ValueError: a field is missing or broken.
    """
    prompt = fields.question(fields.field(values, "problem"))
    cases = _cases(parsed(fields.field(values, "tests"), "tests"))
    kinds = {_is_call(case) for case in cases}
    if len(kinds) > 1:
        raise NoAnswer("some tests are of a function, and others of standard input")
    given = values.get("starter_code")
    starter_code = given if isinstance(given, str) else ""
    if kinds == {False}:
        tests = [Case(_lines(case["input"]), _lines(case["output"])) for case in cases]
        return Problem("", prompt, starter_code, None, checked(None, tests))
    function = _function(values, cases)
    tests = checked(function, _calls(cases))
    starter_code = starter_code or _head(function, tests[0].input)
    return Problem("", prompt, starter_code, function, tests)


def _cases(value: Any) -> list[dict[str, Any]]:
    """Return the tests as a list of objects with input and output."""
    if isinstance(value, dict):
        inputs, outputs = value.get("inputs"), value.get("outputs")
        if not isinstance(inputs, list) or not isinstance(outputs, list):
            raise NoAnswer("the tests are an object without inputs and outputs")
        if len(inputs) != len(outputs):
            raise NoAnswer(f"there are {len(inputs)} inputs and {len(outputs)} outputs")
        name = value.get("fn_name")
        value = [
            {"input": given, "output": wanted, "fn_name": name}
            for given, wanted in zip(inputs, outputs, strict=True)
        ]
    if not isinstance(value, list) or not value:
        raise NoAnswer("there are no tests")
    if not all(isinstance(case, dict) and {"input", "output"} <= case.keys() for case in value):
        raise NoAnswer("a test has no input or output")
    return value


def _is_call(case: dict[str, Any]) -> bool:
    return bool(case.get("fn_name") or {case.get("testtype"), case.get("type")} & FUNCTIONAL)


def _function(values: dict[str, Any], cases: list[dict[str, Any]]) -> str:
    metadata = parsed(values.get("metadata"), "metadata")
    known = {case.get("fn_name") for case in cases} - {None}
    if isinstance(metadata, dict) and metadata.get("func_name"):
        known.add(metadata["func_name"])
    if len(known) != 1 or not isinstance(name := known.pop(), str):
        raise NoAnswer("the tests are of a function without one name")
    return name


def _calls(cases: list[dict[str, Any]]) -> list[Case]:
    """Return the tests of a function: a line of JSON for each argument, and JSON."""
    if all(isinstance(case["input"], str) for case in cases):
        return [Case(case["input"], case["output"]) for case in cases]
    if not all(isinstance(case["input"], list) for case in cases):
        raise NoAnswer("the arguments of a function are not a list")
    outputs = [case["output"] for case in cases]
    if all(isinstance(output, list) and len(output) == 1 for output in outputs):
        outputs = [output[0] for output in outputs]
    return [
        Case("\n".join(map(json.dumps, case["input"])), json.dumps(output))
        for case, output in zip(cases, outputs, strict=True)
    ]


def _head(function: str, given: str) -> str:
    """Return starter code that tells the function's name and number of arguments."""
    arguments = ", ".join(f"argument_{number}" for number in range(1, given.count("\n") + 2))
    return f"def {function}({arguments}):\n    ..."


def _lines(value: Any) -> Any:
    return "\n".join(value) if isinstance(value, list) and all(map(_is_text, value)) else value


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
