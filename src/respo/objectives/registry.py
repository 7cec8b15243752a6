"""The objectives by name: registration, parameters and identity of the source."""

import ast
import difflib
import functools
import hashlib
import importlib
import importlib.util
import inspect
import os
import pkgutil
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from torch import Tensor

from respo.objectives.parameters import Range

# What is between a log-ratio and a gradient for every objective.
SHARED = ("advantages.py", "coefficients.py", "loss.py", "ratios.py")
# What an objective imports to declare itself.
NO_FORMULA = ("registry.py", "parameters.py")
INPUTS = (
    "log_ratio_BT",
    "mean_log_ratio_B1",
    "log_weight_B1",
    "advantage_B1",
    "mask_BT",
    "old_log_prob_BT",
    "log_prob_BT",
    "entropy_BT",
    "batch_sums",
)
SEQUENCE_LEVEL = {"mean_log_ratio_B1", "log_weight_B1"}
# The environment variable that names a folder of objectives outside the package.
OWN_METHODS = "RESPO_METHODS"


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
    sums: Callable[..., Tensor] | None
    sums_inputs: tuple[str, ...]


_OBJECTIVES: dict[str, Objective] = {}


def objective(
    name: str, *, sums: Callable[..., Tensor] | None = None
) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Register a coefficient function under `name`.

    Positional arguments are tensors, chosen by name:

    - `log_ratio_BT`       l_t = log pi - log pi_old of each token, clamped for exp
    - `mean_log_ratio_B1`  mean of l_t over the response's tokens, clamped for exp, float64
    - `log_weight_B1`      L = log W, the sum of l_t over the response, clamped for exp, float64
    - `advantage_B1`, `mask_BT` (bool), `old_log_prob_BT`
    - `log_prob_BT`, `entropy_BT`  of the current policy, detached
    - `batch_sums`         what `sums` returns for the whole mini-batch

    `sums` is for an objective that depends on the whole mini-batch: a function of the same form and
    with the same parameters, which returns a float64 vector of sums over valid tokens. Backends
    that split a mini-batch add the vectors of its parts before any coefficient is computed.

    Masked positions of the token tensors hold 0. Keyword-only arguments are parameters, typed
    with one of `respo.objectives.parameters` (or that `| None`), each with its default. The
    function returns c as (B, T) or (B, 1); what it returns at masked tokens does not matter.

    Raises TypeError for a function that does not follow this form.
    """

    def register(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
        known = _OBJECTIVES.get(name)
        if known and _identity(known.function) != _identity(function):
            raise TypeError(f"objective {name!r} is already defined in {_source(known.function)}")
        _OBJECTIVES[name] = _describe(name, function, sums)
        return function

    return register


def import_modules(package: ModuleType) -> None:
    """Import every module of `package`, so that its objectives register themselves."""
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")


def use_own(folder: Path) -> None:
    """Make the objectives of a folder known to this process and to those that it starts."""
    os.environ[OWN_METHODS] = str(folder.resolve())


@functools.cache
def import_own(folder: str) -> None:
    """Import every Python file of a folder, once, so that its objectives register themselves.

    Raises:
        ValueError: a file that cannot be imported, or one that defines an existing objective.
    """
    for path in sorted(Path(folder).glob("*.py")):
        module_name = f"respo_own.{path.stem}"
        spec = importlib.util.spec_from_file_location(module_name, path)
        if spec is None or spec.loader is None:
            raise ValueError(f"{path}: cannot be imported")
        module = importlib.util.module_from_spec(spec)
        sys.modules[module_name] = module
        try:
            spec.loader.exec_module(module)
        except Exception as error:
            del sys.modules[module_name]
            raise ValueError(f"{path}: {type(error).__name__}: {error}; mend the file") from error


def get(name: str) -> Objective:
    """Return the objective called `name`; ValueError lists the known ones."""
    _import_configured()
    if name not in _OBJECTIVES:
        raise ValueError(_unknown("objective", name, objective_names()))
    return _OBJECTIVES[name]


def objective_names() -> list[str]:
    """Return the names of all objectives, sorted."""
    _import_configured()
    return sorted(_OBJECTIVES)


def needs(name: str) -> frozenset[str]:
    """Return the names of the tensors that an objective depends on, see `objective`."""
    return frozenset(get(name).inputs + get(name).sums_inputs)


def is_sequence_level(name: str) -> bool:
    """Tell whether all tokens of a response have the same coefficient."""
    return not SEQUENCE_LEVEL.isdisjoint(needs(name))


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

    They change with the code of the objective's module, of the objectives that it imports and of
    the modules that every objective goes through, and with nothing else: comments, blank lines and
    docstrings do not count. The files are read anew at each call. Comparable between runs of the
    same minor version of Python, whose printer of syntax trees it uses.
    """
    package = Path(__file__).parent
    sources = {package / name: (package / name).read_text(encoding="utf-8") for name in SHARED}
    to_read = [_source(get(name).function)]
    while to_read:
        path = to_read.pop()
        if path not in sources and path.name not in NO_FORMULA:
            sources[path] = path.read_text(encoding="utf-8")
            to_read += [package / f"{module}.py" for module in _imported(sources[path])]
    hashes = sorted(f"{path.name} {source_hash(source)}" for path, source in sources.items())
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()[:12]


def _imported(source: str) -> list[str]:
    """Return the modules of this package that a source imports from."""
    package = f"{__package__}."
    return [
        node.module.removeprefix(package)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(package)
    ]


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


def _import_configured() -> None:
    if folder := os.environ.get(OWN_METHODS):
        import_own(folder)


def _describe(
    name: str, function: Callable[..., Tensor], sums: Callable[..., Tensor] | None = None
) -> Objective:
    inputs, parameters = _signature(name, function)
    sums_inputs, sums_parameters = _signature(name, sums) if sums else ((), parameters)
    if sums_parameters != parameters:
        raise TypeError(f"objective {name}: its sums must take the same parameters")
    if ("batch_sums" in inputs) != (sums is not None) or "batch_sums" in sums_inputs:
        raise TypeError(
            f"objective {name}: batch_sums and the function that makes them belong together"
        )
    return Objective(function, inputs, parameters, sums, sums_inputs)


def _signature(
    name: str, function: Callable[..., Tensor]
) -> tuple[tuple[str, ...], dict[str, Parameter]]:
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
    return tuple(inputs), parameters


def _allowed(hint: Any) -> tuple[Range | None, bool]:
    """Return the range in a type hint `Annotated[float, Range]` or that `| None`."""
    optional = get_origin(hint) in (Union, UnionType) and type(None) in get_args(hint)
    if optional:
        hint = next(member for member in get_args(hint) if member is not type(None))
    if get_origin(hint) is Annotated:
        return next((extra for extra in get_args(hint) if isinstance(extra, Range)), None), optional
    return None, optional
