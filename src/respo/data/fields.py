"""From the field of a record to a text: question, gold answer, name."""

import json
import math
import re
from decimal import Decimal
from typing import Any, Literal

from respo.rewards import last_box

AnswerForm = Literal["text", "integer", "boxed", "list"]
# An integer as benchmarks write it: 33, 033, 33.0, $33$, 33^\circ.
INTEGER = re.compile(r"\$?([-+]?)([0-9]+)(?:\.0*)?(?:\^\\circ|\^\{\\circ\}|°)?\$?")
# So many significant digits of a decimal survive in a float.
EXACT_DIGITS = 15


class NoAnswer(ValueError):
    """A row has no gold answer, or more than one."""


def field(values: dict[str, Any], name: str) -> Any:
    """Return the value of a field; a dot goes into a nested one.

    Raises:
        ValueError: there is no such field, or it is empty.
    """
    found: Any = values
    for part in name.split("."):
        if not isinstance(found, dict) or part not in found:
            known = ", ".join(found) if isinstance(found, dict) else "no fields"
            raise ValueError(f"field {name!r} is missing; there are {known}")
        found = found[part]
    if found is None:
        raise ValueError(f"field {name!r} is null")
    return found


def question(value: Any) -> str:
    """Return the text of a question, or of a chat that is one user message.

    Raises:
        ValueError: it is empty or something else.
    """
    if isinstance(value, list):
        message = value[0] if len(value) == 1 else None
        if not isinstance(message, dict) or message.get("role") != "user":
            raise ValueError("the prompt is a list, but not of one message with role 'user'")
        value = message.get("content")
    if not isinstance(value, str):
        raise ValueError(f"the prompt is {_kind(value)}, not a text")
    if not value.strip():
        raise ValueError("the prompt is empty")
    return _encodable(value.strip())


def gold_answer(value: Any, form: AnswerForm) -> str:
    """Return the canonical text of a gold answer.

    Raises:
        NoAnswer: it is empty or more than one.
        ValueError: it has not this form.
    """
    text = _answer_text(_items(value) if form == "list" else value)
    if form == "boxed":
        content = last_box(text)
        if content is None:
            raise ValueError("the answer has no complete \\boxed{}")
        text = content.strip()
    elif form == "integer":
        found = INTEGER.fullmatch(text)
        if not found:
            raise ValueError(f"the answer {text[:60]!r} is not an integer")
        digits = found[2].lstrip("0") or "0"
        text = f"-{digits}" if found[1] == "-" and digits != "0" else digits
    if not text:
        raise NoAnswer("the answer is empty")
    return _encodable(text)


def name(value: Any) -> str:
    """Return the name of a row.

    Raises:
        ValueError: it is neither text nor integer, or empty.
    """
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise ValueError(f"the id is {value!r}, not a text or an integer")
    return _encodable(str(value))


def _encodable(text: str) -> str:
    """Refuse halves of surrogate pairs, which JSON can hold and UTF-8 cannot."""
    text.encode()
    return text


def _items(value: Any) -> list[Any]:
    """Return the list that a text holds as JSON."""
    try:
        items = json.loads(value)
    except (TypeError, ValueError, RecursionError):
        items = None
    if not isinstance(items, list):
        raise ValueError(f"the answer {str(value)[:60]!r} is not a list as JSON")
    return items


def _answer_text(value: Any) -> str:
    if isinstance(value, list):
        if len(value) != 1:
            raise NoAnswer(f"the answer is a list of {len(value)}, not of one")
        value = value[0]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"the answer is {_kind(value)}, not a text or a number")
    return decimal_text(value) if isinstance(value, float) else str(value).strip()


def decimal_text(value: float) -> str:
    """Write a number as a plain decimal, a whole one as an integer: an exponent is no answer.

    Raises:
        ValueError: it is none, or has more digits than a float keeps of what somebody wrote.
    """
    if not math.isfinite(value):
        raise ValueError(f"the answer is {value}, not a number")
    if value.is_integer() and abs(value) < 10**EXACT_DIGITS:
        return str(int(value))
    number = Decimal(repr(value)).normalize()
    if len(number.as_tuple().digits) > EXACT_DIGITS:
        raise ValueError(
            f"the answer {value} is a number with more digits than are exact; quote it"
        )
    return f"{number:f}"


def _kind(value: Any) -> str:
    return "null" if value is None else f"of type {type(value).__name__}"
