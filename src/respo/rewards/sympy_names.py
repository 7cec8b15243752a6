"""Spare sympy's ``parse_expr`` the import of all its names, one millisecond of each call.

``parse_expr`` fills a dictionary with ``from sympy import *`` and Python's functions whenever it is
given none, and sympy calls it for each number that arrives as text. Here it is filled once, and
each call gets a copy.
"""

import builtins
from types import BuiltinFunctionType
from typing import Any

import sympy
from math_verify import parser
from sympy.parsing import sympy_parser

NAMES: dict[str, Any] = {
    "__builtins__": vars(builtins),
    **{name: getattr(sympy, name) for name in sympy.__all__},
    **{name: it for name, it in vars(builtins).items() if isinstance(it, BuiltinFunctionType)},
    "max": sympy.Max,
    "min": sympy.Min,
}
original = sympy_parser.parse_expr


def install() -> None:
    """Have sympy and Math-Verify call the quicker function."""
    sympy_parser.parse_expr = parser.parse_expr = parse_expr


def parse_expr(s: str, *arguments: Any, **options: Any) -> Any:
    """Call the original; the names are its third argument after the text."""
    if len(arguments) < 3 and options.get("global_dict") is None:
        options["global_dict"] = dict(NAMES)
    return original(s, *arguments, **options)
