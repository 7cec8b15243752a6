"""Keep sympy's ``parse_expr`` to numbers, and spare it the import of all its names.

It evaluates a text as Python: a text from a response that held a call would run as a program, with
all rights of the process. Math-Verify and latex2sympy give it none but numbers and terms of
numbers; sympy itself adds names, of units, and a few functions, of numbers that it has recognised.
Anything else is refused, whatever a later version finds in a response.

``parse_expr`` fills a dictionary with ``from sympy import *`` and Python's functions whenever it is
given none, and sympy calls it for each number that arrives as text. Here it is filled once, and
each call gets a copy.
"""

import builtins
import re
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
# A name with nothing behind it is no more than what it stands for.
HARMLESS = re.compile(r"\w+|(?:[\d\s.,+\-*/^%()×÷]|exp|log|sqrt|pi|e|E)*")
original = sympy_parser.parse_expr


def install() -> None:
    """Have sympy and Math-Verify call the quicker function."""
    sympy_parser.parse_expr = parser.parse_expr = parse_expr


def parse_expr(s: str, *arguments: Any, **options: Any) -> Any:
    """Call the original; the names are its third argument after the text.

    Raises:
        ValueError: the text is neither one name nor a term of numbers.
    """
    if not HARMLESS.fullmatch(s):
        raise ValueError(f"{s!r:.50} is not a number")
    if len(arguments) < 3 and options.get("global_dict") is None:
        options["global_dict"] = dict(NAMES)
    return original(s, *arguments, **options)
