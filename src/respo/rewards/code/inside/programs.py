"""Executing a program in this process, which is a fork made for it alone."""

# pathlib takes long to import.
# ruff: noqa: PTH123

import importlib
import json
import os
import sys
from contextlib import suppress
from io import TextIOWrapper
from types import ModuleType
from typing import Any, cast

# LiveCodeBench has every name of these modules, in this order, imported before a program, then the
# modules by their own names.
_MODULES = (
    *("string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random"),
    *("statistics", "itertools", "functools", "operator", "io", "sys", "json", "builtins"),
    "typing",
)
_RECURSION = 50_000
_DIGITS = 50_000  # of an integer as text; LiveCodeBench sets it too


def names() -> dict[str, Any]:
    """Return what a program finds imported."""
    modules = {name: importlib.import_module(name) for name in _MODULES}
    found: dict[str, Any] = {}
    for module in modules.values():
        public = getattr(module, "__all__", [name for name in vars(module) if name[0] != "_"])
        found.update((name, getattr(module, name)) for name in public)
    return found | modules | {"exit": sys.exit, "quit": sys.exit}


def run_program(program: str, found: dict[str, Any]) -> None:
    """Run a program that reads standard input; `sys.exit` is an end, whatever its code.

    What the interpreter does at its own end (wait for threads, flush and close files) is still to
    come: output may hang on it.
    """
    module = _module("__main__", found)
    with suppress(SystemExit):
        exec(compile(program, "<program>", "exec", dont_inherit=True), vars(module))  # noqa: S102


def run_function(program: str, found: dict[str, Any], function: str, arguments: str) -> None:
    """Call a function and write its value to standard output, where nothing else is written.

    Args:
        program: defines the function, or a class `Solution` of which it is a method.
        found: what a program finds imported.
        function: the name.
        arguments: a JSON value on each line.
    """
    result = os.dup(1)
    os.dup2(2, 1)
    module = _module("solution", found)
    exec(compile(program, "<program>", "exec", dont_inherit=True), vars(module))  # noqa: S102
    owner = module.Solution() if hasattr(module, "Solution") else module
    value = getattr(owner, function)(*map(json.loads, arguments.split("\n")))
    with open(result, "w", encoding="utf-8") as file:
        json.dump(value, file, default=_plain)


def _plain(value: Any) -> Any:
    """Return a number or array of numpy as Python has it."""
    if type(value).__module__ == "numpy":
        return value.tolist()
    raise TypeError(f"a value of type {type(value).__name__} is not one of JSON")


def _module(name: str, found: dict[str, Any]) -> ModuleType:
    sys.setrecursionlimit(_RECURSION)
    sys.set_int_max_str_digits(_DIGITS)
    sys.stdin = sys.__stdin__ = _stream(0, "r")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _stream(1, "w")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _stream(2, "w")  # type: ignore[misc]
    # Also by the names that are imported for it.
    streams = {"stdin": sys.stdin, "stdout": sys.stdout, "stderr": sys.stderr}
    module = sys.modules[name] = ModuleType(name)
    vars(module).update(found | streams | {"exit": sys.exit, "quit": sys.exit, "__name__": name})
    found["random"].seed(0)  # a verdict can be had again
    return module


def _stream(number: int, mode: str) -> TextIOWrapper:
    """Open a stream as the interpreter does."""
    return cast(TextIOWrapper, open(number, mode, encoding="utf-8", closefd=False))
