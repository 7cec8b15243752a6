"""Executing a program in this process, which is a fork made for it alone."""

# pathlib takes long to import; the streams stay open.
# ruff: noqa: PTH123, SIM115

import atexit
import importlib
import io
import json
import os
import sys
import threading
from contextlib import suppress
from types import ModuleType
from typing import Any

# LiveCodeBench has every name of these modules, in this order, imported before a program, then the
# modules by their own names.
_MODULES = (
    *("string", "re", "datetime", "collections", "heapq", "bisect", "copy", "math", "random"),
    *("statistics", "itertools", "functools", "operator", "io", "sys", "json", "builtins"),
    "typing",
)
_RECURSION = 50_000


def names() -> dict[str, Any]:
    """Return what a program finds imported."""
    modules = {name: importlib.import_module(name) for name in _MODULES}
    found: dict[str, Any] = {}
    for module in modules.values():
        public = getattr(module, "__all__", [name for name in vars(module) if name[0] != "_"])
        found.update((name, getattr(module, name)) for name in public)
    return found | modules | {"exit": sys.exit, "quit": sys.exit}


def run_program(program: str, found: dict[str, Any]) -> None:
    """Run a program that reads standard input to its end; `sys.exit` is one, whatever its code."""
    module = _module("__main__", found)
    with suppress(SystemExit):
        exec(compile(program, "<program>", "exec", dont_inherit=True), vars(module))
    _finish()


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
    exec(compile(program, "<program>", "exec", dont_inherit=True), vars(module))
    owner = module.Solution() if hasattr(module, "Solution") else module
    value = getattr(owner, function)(*map(json.loads, arguments.split("\n")))
    with open(result, "w", encoding="utf-8") as file:
        json.dump(value, file)


def _module(name: str, found: dict[str, Any]) -> ModuleType:
    sys.setrecursionlimit(_RECURSION)
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8")  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = open(2, "w", encoding="utf-8")  # type: ignore[misc]
    # Also by the names that are imported for it.
    streams = {"stdin": sys.stdin, "stdout": sys.stdout, "stderr": sys.stderr}
    module = sys.modules[name] = ModuleType(name)
    vars(module).update(found | streams | {"exit": sys.exit, "quit": sys.exit, "__name__": name})
    found["random"].seed(0)  # a verdict can be had again
    return module


def _finish() -> None:
    """Do what the interpreter does at its end, but for taking itself apart."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.__stdout__):
        if isinstance(stream, io.TextIOBase) and not stream.closed:
            stream.flush()
