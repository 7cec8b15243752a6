"""`python -m respo.config.document`: write the JSON schemas and the key tables of config/README.md.

Both come from `respo.config.schema`, so they cannot contradict what is accepted; a test fails when
they are out of step.
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from respo.cli import command
from respo.config.schema import Benchmark, Cluster, Dataset, Method, Model, Settings, Study
from respo.files import write_text

CONFIG = Path(__file__).parents[3] / "config"
# Kind of file -> its model, or a union of models; the kind names the schema file and the section of
# the README.
KINDS: dict[str, Any] = {
    "settings": Settings,
    "cluster": Cluster,
    "study": Study,
    "method": Method,
    "model": Model,
    "dataset": Dataset,
    "benchmark": Benchmark,
}
TABLE = re.compile(r"(<!-- keys: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def json_schema(kind: str) -> str:
    """Return the JSON schema of a kind of file, for editors."""
    return json.dumps(TypeAdapter(KINDS[kind]).json_schema(), indent=2) + "\n"


def key_table(kind: Any) -> str:
    """Return a Markdown table of the keys of a model and of the models nested in it.

    For a union of models that one key tells apart, a table for each value of that key.
    """
    schema = TypeAdapter(kind).json_schema()
    defs = schema.get("$defs", {})
    if "oneOf" not in schema:
        return _table(schema, defs)
    key, variants = schema["discriminator"]["propertyName"], schema["discriminator"]["mapping"]
    return "\n".join(
        f"With `{key}: {value}`:\n\n{_table(defs[reference.rsplit('/', 1)[1]], defs)}"
        for value, reference in variants.items()
    )


def _table(schema: dict[str, Any], defs: dict[str, Any]) -> str:
    rows = ["| key | value | default | meaning |", "|---|---|---|---|"]
    rows += _rows(schema, defs, "")
    return "\n".join(rows) + "\n"


def readme(text: str) -> str:
    """Return the README with the tables between its markers made anew."""
    return TABLE.sub(lambda match: match[1] + key_table(KINDS[match[2]]) + match[3], text)


def _rows(schema: dict[str, Any], defs: dict[str, Any], prefix: str) -> list[str]:
    rows = []
    required = [*schema.get("required", []), *schema.get("then", {}).get("required", [])]
    for key, field in schema["properties"].items():
        nested, mark = _nested(field, defs)
        default = "required" if key in required else _code(field.get("default"))
        kind = "keys below" if nested else _kind(field, defs)
        rows.append(f"| `{prefix}{key}` | {kind} | {default} | {field.get('description', '')} |")
        if nested:
            rows += _rows(nested, defs, f"{prefix}{key}{mark}.")
    return rows


def _nested(field: dict[str, Any], defs: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Return the schema of nested keys and `[]` if there is a list of them."""
    for option in field.get("anyOf", []):
        if "$ref" in option:
            return _nested(option, defs)
    if "$ref" in field:
        target = defs[field["$ref"].rsplit("/", 1)[1]]
        return (target, "") if "properties" in target else (None, "")
    if "$ref" in field.get("items", {}):
        return _nested(field["items"], defs)[0], "[]"
    return None, ""


def _kind(field: dict[str, Any], defs: dict[str, Any]) -> str:
    if "enum" in field:
        return ", ".join(_code(value) for value in field["enum"])
    if "const" in field:
        return _code(field["const"])
    if "anyOf" in field:
        return " or ".join(_kind(option, defs) for option in field["anyOf"])
    if field["type"] == "array":
        return f"list of {_kind(field['items'], defs)}"
    if field["type"] == "object":
        return "keys and values"
    low = field.get("minimum", field.get("exclusiveMinimum"))
    high = field.get("maximum", field.get("exclusiveMaximum"))
    least = "≥" if "minimum" in field else ">"
    most = "≤" if "maximum" in field else "<"
    bounds = f"{least} {_number(low)}" if low is not None else ""
    bounds += f" {most} {_number(high)}" if high is not None else ""
    return " ".join([field["type"].replace("null", "nothing"), bounds]).strip()


def _number(value: float) -> str:
    return f"{value:,}".removesuffix(".0")


def _code(value: Any) -> str:
    return f"`{json.dumps(value)}`".replace('"', "")


@command
def main() -> None:
    """Write all schemas and the tables."""
    argparse.ArgumentParser(
        prog="python -m respo.config.document", description=__doc__
    ).parse_args()
    for kind in KINDS:
        write_text(CONFIG / "schema" / f"{kind}.json", json_schema(kind))
    path = CONFIG / "README.md"
    write_text(path, readme(path.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
