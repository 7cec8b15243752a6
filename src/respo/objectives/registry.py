"""The objectives by name: registration, parameters and identity of the source."""

import ast
import difflib
import hashlib
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from torch import Tensor

from respo.objectives.parameters import Range

# What is between a log-ratio and a gradient for every objective.
SHARED = ("advantages.py", "coefficients.py", "loss.py", "ratios.py")
INPUTS = (
    "log_ratio_BT",
    "mean_log_ratio_B1",
    "log_weight_B1",
    "advantage_B1",
    "mask_BT",
    "old_log_prob_BT",
)


@dataclass(frozen=True)
class Parameter:
    """A keyword-only argument of an objective: its default and what it may be."""

    default: float | None
    allowed: Range
    optional: bool

    def __contains__(self, value: object) -> bool:
        return (value is None and self.optional) or value in self.allowed

    def __str__(self) -> str:
        return f"{self.allowed}, or null" if self.optional else str(self.allowed)


@dataclass(frozen=True)
class Objective:
    """A registered coefficient function with the tensors and parameters that it names."""

    function: Callable[..., Tensor]
    inputs: tuple[str, ...]
    parameters: dict[str, Parameter]


_OBJECTIVES: dict[str, Objective] = {}


def objective(name: str) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Register a coefficient function under `name`.

    Positional arguments are tensors, chosen by name:

    - `log_ratio_BT`       l_t = log pi - log pi_old of each token, clamped for exp
    - `mean_log_ratio_B1`  mean of l_t over the response's tokens, clamped for exp, float64
    - `log_weight_B1`      L = log W, the sum of l_t over the response, clamped for exp, float64
    - `advantage_B1`, `mask_BT` (bool), `old_log_prob_BT`

    Masked positions of the token tensors hold 0. Keyword-only arguments are parameters, typed
    with one of `respo.objectives.parameters` (or that `| None`), each with its default. The
    function returns c as (B, T) or (B, 1); what it returns at masked tokens does not matter.

    Raises TypeError for a function that does not follow this form.
    """

    def register(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        known = _OBJECTIVES.get(name)
        if known and _identity(known.function) != _identity(function):
            raise TypeError(f"objective {name!r} is already defined in {_source(known.function)}")
        _OBJECTIVES[name] = _describe(name, function)
        return function

    return register


def import_modules(package: ModuleType) -> None:
    """Import every module of `package`, so that its objectives register themselves."""
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")


def get(name: str) -> Objective:
    """Return the objective called `name`; ValueError lists the known ones."""
    if name not in _OBJECTIVES:
        raise ValueError(_unknown("objective", name, objective_names()))
    return _OBJECTIVES[name]


def objective_names() -> list[str]:
    """Return the names of all objectives, sorted."""
    return sorted(_OBJECTIVES)


def parameter_defaults(name: str) -> dict[str, float | None]:
    """Return the parameters of an objective with their published defaults."""
    return {key: parameter.default for key, parameter in get(name).parameters.items()}


def check_parameters(name: str, parameters: dict[str, Any]) -> dict[str, float | None]:
    """Return all parameters of an objective, the given ones over the defaults.

    Raises ValueError for an unknown objective, an unknown parameter or a value outside the
    parameter's range; the message says which, and what is allowed.
    """
    known = get(name).parameters
    for key, value in parameters.items():
        if key not in known:
            raise ValueError(_unknown(f"parameter of {name}", key, known))
        if value not in known[key]:
            raise ValueError(f"{name}: {key} = {value!r} is not allowed; it must be {known[key]}")
    given = {key: None if value is None else float(value) for key, value in parameters.items()}
    return parameter_defaults(name) | given


def code_hash(name: str) -> str:
    """Return 12 hex digits that identify the formula of an objective.

    They change with the code of the objective's module and of the modules that every objective
    goes through, and with nothing else: comments, blank lines and docstrings do not count. The
    files are read anew at each call. Comparable between runs of the same minor version of Python,
    whose printer of syntax trees it uses.
    """
    paths = [_source(get(name).function), *(Path(__file__).with_name(n) for n in SHARED)]
    return source_hash("\n".join(path.read_text(encoding="utf-8") for path in paths))


def source_hash(source: str) -> str:
    """Return 12 hex digits of the SHA-256 of Python source without comments and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) and (ast.get_docstring(node, clean=False) is not None):
            node.body = node.body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:12]


def _identity(function: Callable[..., Tensor]) -> tuple[str, str]:
    return function.__module__, function.__qualname__


def _source(function: Callable[..., Tensor]) -> Path:
    return Path(inspect.getfile(function))


def _unknown(what: str, name: object, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(str(name), known, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"unknown {what}: {name!r}{hint}; known: {', '.join(known) or 'none'}"


def _describe(name: str, function: Callable[..., Tensor]) -> Objective:
    hints = get_type_hints(function, include_extras=True)
    inputs: list[str] = []
    parameters: dict[str, Parameter] = {}
    for key, argument in inspect.signature(function).parameters.items():
        if argument.kind is not inspect.Parameter.KEYWORD_ONLY:
            if key not in INPUTS:
                raise TypeError(_unknown(f"input of objective {name}", key, INPUTS))
            inputs.append(key)
            continue
        allowed, optional = _allowed(hints.get(key))
        if allowed is None or argument.default is argument.empty:
            raise TypeError(f"objective {name}: {key} needs a range as its type and a default")
        parameters[key] = Parameter(argument.default, allowed, optional)
    return Objective(function, tuple(inputs), parameters)


def _allowed(hint: Any) -> tuple[Range | None, bool]:
    """Return the range in a type hint `Annotated[float, Range]` or that `| None`."""
    optional = get_origin(hint) in (Union, UnionType) and type(None) in get_args(hint)
    if optional:
        hint = next(member for member in get_args(hint) if member is not type(None))
    if get_origin(hint) is Annotated:
        return next((extra for extra in get_args(hint) if isinstance(extra, Range)), None), optional
    return None, optional
