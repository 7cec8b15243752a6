"""The quicker ``parse_expr`` sees the same names, and returns the same expressions."""

from typing import Any

import pytest
from sympy.parsing.sympy_parser import standard_transformations

from respo.rewards import sympy_names


def test_the_names_are_those_of_sympy() -> None:
    seen: list[dict[str, Any]] = []

    def look(tokens: list, local: dict, names: dict) -> list:
        seen.append(dict(names))
        return tokens

    for function in (sympy_names.original, sympy_names.parse_expr):
        function("1", transformations=(look, *standard_transformations))
    assert seen[0] == seen[1]
    assert all(seen[1][name] is value for name, value in seen[0].items())


@pytest.mark.parametrize("text", ["1", "0.5", "-2*(3 - 1e3)**2", "1/2", "print", "-(log((3/2)))"])
@pytest.mark.parametrize("evaluate", [True, False])
def test_the_expressions_are_those_of_sympy(text: str, evaluate: bool) -> None:
    expected = sympy_names.original(text, evaluate=evaluate)
    assert sympy_names.parse_expr(text, evaluate=evaluate) == expected


@pytest.mark.parametrize(
    "text",
    ["open('x', 'w')", "exec(chr(49))", "().__class__", "print()", "(1).real", "[1]", "lambda: 1"],
)
def test_what_could_run_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a number"):
        sympy_names.parse_expr(text)


def test_names_that_are_given_stay() -> None:
    names = {"Integer": lambda n: n + 1}
    assert sympy_names.parse_expr("1", None, standard_transformations, dict(names)) == 2
    assert sympy_names.parse_expr("1", global_dict=dict(names)) == 2
