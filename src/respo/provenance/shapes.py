"""Parts of records as what they should be: those of other versions may say anything."""

from typing import Any


def mapping(value: Any) -> dict[str, Any]:
    """Return a mapping, empty in place of what is none."""
    return value if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    """Return a list, empty in place of what is none."""
    return value if isinstance(value, list) else []


def texts(value: Any) -> dict[str, str]:
    """Return a mapping of texts, empty in place of what is none."""
    return {key: str(part) for key, part in mapping(value).items()}


def number(value: Any) -> float | None:
    """Return a number, None in place of what is none."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
