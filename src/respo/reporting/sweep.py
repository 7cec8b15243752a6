"""What the labels of a sweep's methods stand for, such as MASPO 0.5/0.03."""

from collections.abc import Collection

from respo.config.schema import Method
from respo.config.study import ResolvedStudy
from respo.reporting import choices, selection


def sweep_note(study: ResolvedStudy, shown: Collection[str]) -> str:
    """Give the parameters that a sweep varies, for the methods of it that are shown.

    For labels that end in just these values, it tells once what they are.

    Returns:
        A clause that begins with "; "; nothing where fewer than two of the sweep are shown.
    """
    methods = [study.methods[name] for name in choices.sweep(study) if name in shown]
    if len(methods) < 2:
        return ""
    keys = selection.differing(methods)
    varied = {method.label: _merged(method, keys) for method in methods}
    told = {k: v for k, v in varied.items() if not k.endswith("/".join(v.values()))}
    clauses = [f"{label}: {_listed(values)}" for label, values in told.items()]
    if by_label := next((label for label in varied if label not in told), None):
        clauses.insert(0, f"labels such as {by_label} give {'/'.join(varied[by_label])}")
    return "; " + "; ".join(clauses)


def _merged(method: Method, keys: list[str]) -> dict[str, str]:
    """Return parameters as text; `beta_low` and `beta_high` that are the same are `beta`."""
    values = {key: _text(method.parameters.get(key)) for key in keys}
    for low in [key for key in keys if key.endswith("_low")]:
        name = low.removesuffix("_low")
        if values.get(f"{name}_high") == values[low]:
            del values[f"{name}_high"]
            values[name] = values.pop(low)
    return values


def _text(value: float | None) -> str:
    return "none" if value is None else f"{value:g}"


def _listed(values: dict[str, str]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items())
