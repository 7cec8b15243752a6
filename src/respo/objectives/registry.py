"""The objectives by name: registration and parameters."""

import difflib
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from torch import Tensor

from respo.objectives.own import PACKAGE as OWN_PACKAGE
from respo.objectives.own import import_own, own_folder
from respo.objectives.parameters import Range

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
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
# Parameters are handed on beside these.
RESERVED = {*INPUTS, "name", "advantage_B", "objective", "parameters", "loss_mode", "cls"}
RESERVED |= {"sign", "log_w", "log_ratio", "log_old", "prob", "prob_old"}


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
    registered_in: Path | None


_OBJECTIVES: dict[str, Objective] = {}
# The folder outside the package whose objectives are among them.
_imported_folder: Path | None = None


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
        # Not the file of the function, which may be made or wrapped elsewhere.
        caller = Path(sys._getframe(1).f_code.co_filename)
        _OBJECTIVES[name] = _describe(name, function, sums, caller)
        return function

    return register


def import_modules(package: ModuleType) -> None:
    """Import every module of `package`, so that its objectives register themselves."""
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")


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


def _identity(function: Callable[..., Tensor]) -> tuple[str, str]:
    return function.__module__, function.__qualname__


def _source(function: Callable[..., Tensor]) -> Path:
    return Path(inspect.getfile(function))


def _unknown(what: str, name: object, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(str(name), known, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"unknown {what}: {name!r}{hint}; known: {', '.join(known) or 'none'}"


def _import_configured() -> None:
    """Have the objectives of the user's folder of the moment, and of no other."""
    global _imported_folder
    folder = own_folder()
    if folder == _imported_folder:
        return
    _forget_own()
    _imported_folder = folder  # first: the files may ask for objectives themselves
    try:
        if folder is not None:
            import_own(folder)
    except BaseException:
        _forget_own()
        _imported_folder = None
        raise


def _forget_own() -> None:
    for name, known in list(_OBJECTIVES.items()):
        if known.function.__module__.startswith(f"{OWN_PACKAGE}."):
            del _OBJECTIVES[name]


def _describe(
    name: str,
    function: Callable[..., Tensor],
    sums: Callable[..., Tensor] | None = None,
    registered_in: Path | None = None,
) -> Objective:
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise TypeError(f"objective {name!r}: a name is letters, digits, '_' and '-'")
    inputs, parameters = _signature(name, function)
    sums_inputs, sums_parameters = _signature(name, sums) if sums else ((), parameters)
    if sums_parameters != parameters:
        raise TypeError(f"objective {name}: its sums must take the same parameters")
    if ("batch_sums" in inputs) != (sums is not None) or "batch_sums" in sums_inputs:
        raise TypeError(
            f"objective {name}: batch_sums and the function that makes them belong together"
        )
    return Objective(function, inputs, parameters, sums, sums_inputs, registered_in)


def _signature(
    name: str, function: Callable[..., Tensor]
) -> tuple[tuple[str, ...], dict[str, Parameter]]:
    hints = get_type_hints(function, include_extras=True)
    inputs: list[str] = []
    parameters: dict[str, Parameter] = {}
    for key, argument in inspect.signature(function).parameters.items():
        if argument.kind is not inspect.Parameter.KEYWORD_ONLY:
            if key not in INPUTS and argument.default is not argument.empty:
                raise TypeError(f"objective {name}: {key} is a parameter; write a * before it")
            if key not in INPUTS:
                raise TypeError(_unknown(f"input of objective {name}", key, INPUTS))
            inputs.append(key)
            continue
        allowed, optional = _allowed(hints.get(key))
        if allowed is None or argument.default is argument.empty:
            raise TypeError(f"objective {name}: {key} needs a range as its type and a default")
        parameter = Parameter(argument.default, allowed, optional)
        if argument.default not in parameter:
            raise TypeError(f"objective {name}: {key} = {argument.default!r} must be {parameter}")
        if key in RESERVED:
            raise TypeError(f"objective {name}: a parameter cannot be called {key}; rename it")
        parameters[key] = parameter
    return tuple(inputs), parameters


def _allowed(hint: Any) -> tuple[Range | None, bool]:
    """Return the range in a type hint `Annotated[float, Range]` or that `| None`."""
    optional = get_origin(hint) in (Union, UnionType) and type(None) in get_args(hint)
    if optional:
        hint = next(member for member in get_args(hint) if member is not type(None))
    if get_origin(hint) is Annotated:
        return next((extra for extra in get_args(hint) if isinstance(extra, Range)), None), optional
    return None, optional
