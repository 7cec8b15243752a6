"""Plain data to validated objects; every problem becomes one message.

A message names the file, the key, the value and what is allowed. All problems of a file are told at
once.
"""

import difflib
import re
from collections.abc import Iterable
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from respo.cli import UserError
from respo.config.schema import Strict
from respo.config.yaml import NUMBER

M = TypeVar("M", bound=Strict)


def validate(kind: type[M], data: dict[str, Any], path: Path | str) -> M:
    """Build a model from plain data.

    Args:
        kind: a model, or a union of models that one key tells apart.
        data: keys and values.
        path: where they stand, for messages.

    Raises:
        UserError: one line per problem: file, key, value, what is allowed.
    """
    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        lines = [f"{path}: {_describe(kind, problem)}" for problem in error.errors()]
        raise UserError("\n       ".join(lines)) from None


def _describe(kind: Any, problem: ErrorDetails) -> str:
    keys, model = _place(kind, problem["loc"])
    key, value = ".".join(keys), problem["input"]
    message = problem["msg"].removeprefix("Value error, ")
    match problem["type"]:
        case "extra_forbidden":
            known = list(model.model_fields)
            hint = suggestion(keys[-1], known)
            return f"{key}: unknown key{hint}; allowed: {', '.join(known)}"
        case "missing":
            return f"{key}: is missing; add the key"
        case "union_tag_not_found" | "union_tag_invalid" as fault:
            tag = problem["ctx"]["discriminator"].strip("'")
            key = ".".join([*keys, tag])
            if fault == "union_tag_not_found":
                return f"{key}: is missing; add the key"
            return (
                f"{key}: {problem['ctx']['tag']!r} is not allowed: input should be "
                f"{problem['ctx']['expected_tags']}"
            )
        case "value_error":
            # Messages of the validators name key and value themselves.
            return f"{key}: {message}" if key else message
        case "float_type" | "int_type" if isinstance(value, str) and NUMBER.fullmatch(value):
            return f"{key}: {text_for_number(value)}"
        case _:
            return f"{key}: {value!r} is not allowed: {message[0].lower()}{message[1:]}"


def text_for_number(value: str) -> str:
    """Say how a number is written that YAML reads as text."""
    number = re.sub(r"^([-+]?\d+)[eE]", r"\1.0e", value)
    number = re.sub(r"[eE](\d)", r"e+\1", number)
    return (
        f"{value!r} is text to YAML, not a number; write it unquoted, and an exponent after a "
        f"point and with a sign: {number}"
    )


def _place(kind: Any, location: tuple[int | str, ...]) -> tuple[list[str], Any]:
    """Return the keys of a location and the model that the last one is in."""
    keys: list[str] = []
    model = None
    for part in location:
        kind = _bare(kind)
        models = models_in(kind)
        if get_origin(kind) not in (dict, list) and len(models) > 1:
            # Pydantic names the variant of a union as if it were a key.
            kind = next(variant for variant in models if part in _tags(variant))
            continue
        keys.append(str(part))
        if get_origin(kind) in (dict, list):
            kind = get_args(kind)[-1]
        elif models:
            model = models[0]
            kind = model.model_fields[str(part)].annotation if part in model.model_fields else None
    return keys, model


def _bare(kind: Any) -> Any:
    """Return an annotation without its metadata and without None."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    options = [option for option in get_args(kind) if option is not NoneType]
    return _bare(options[0]) if NoneType in get_args(kind) and len(options) == 1 else kind


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that an annotation names: several for a union of them."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in models_in(argument)]


def _tags(model: type[BaseModel]) -> set[Any]:
    """Return the values that tell a model from the others of its union."""
    literals = [field.annotation for field in model.model_fields.values()]
    return {value for kind in literals if get_origin(kind) is Literal for value in get_args(kind)}


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return a question after a name that is close, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
