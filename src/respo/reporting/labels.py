"""How rows are named in every table."""

from collections.abc import Mapping
from typing import Protocol

from respo.config.study import BASELINE, ResolvedStudy


class Named(Protocol):
    """A run, or a row of runs."""

    @property
    def method(self) -> str:
        """Name of the method."""

    @property
    def staleness(self) -> int:
        """N."""


def method(study: ResolvedStudy, row: Named) -> str:
    """Name a row's method; with one update per rollout batch it is the on-policy reference."""
    if row.method == BASELINE:
        return "as it comes"
    label = study.methods[row.method].label
    return f"on-policy ({label})" if row.staleness == 1 else label


def verifier(name: str) -> str:
    """Name a verifier, or a reward, as prose does."""
    return {"strict_box": "strict box", "math_verify": "Math-Verify"}.get(name, name)


def settings(values: Mapping[str, object]) -> str:
    """List parameters or options."""
    return ", ".join(f"{name} {_setting(value)}" for name, value in values.items())


def _setting(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:g}" if isinstance(value, float) else str(value)


def staleness(row: Named) -> str:
    """Print a row's N; models without training have none."""
    return "" if row.method == BASELINE else str(row.staleness)
