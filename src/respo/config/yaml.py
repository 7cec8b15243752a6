"""YAML without its traps.

PyYAML reads `010` as 8, `1:30` as 90, `on:` as the key True, and keeps the last of two equal keys;
with aliases (`*name`) ten lines can stand for a billion values. Here each is an error that names
file and line. `3e-4`, a string to PyYAML, is refused later, by the
schema, with the same advice. Nothing but plain data is ever built.
"""

import re
from pathlib import Path
from typing import Any

import yaml

from respo.cli import UserError, explain

NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
PLAIN_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")


class _Loader(yaml.SafeLoader):
    """SafeLoader that refuses what would silently mean something else."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            raise yaml.composer.ComposerError(
                None, None, f"*{event.anchor} is not read; write the values out", event.start_mark
            )
        return super().compose_node(parent, index)


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {key_node.value!r} is not text; quote it", key_node.start_mark
            )
        if key in mapping:
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {key!r} stands twice; keep one", key_node.start_mark
            )
        mapping[key] = loader.construct_object(value_node, deep=True)
    return mapping


def _integer(loader: _Loader, node: yaml.ScalarNode) -> int:
    if not PLAIN_INTEGER.fullmatch(node.value):
        raise yaml.constructor.ConstructorError(
            None,
            None,
            f"{node.value!r} is not a plain decimal integer; write it without leading zeros, "
            "underscores or colons, or quote it",
            node.start_mark,
        )
    return int(node.value)


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_constructor("tag:yaml.org,2002:int", _integer)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping.

    Raises:
        UserError: the file is missing, is not YAML, or holds one of the traps; file and line named.
    """
    try:
        value = yaml.load(path.read_text(encoding="utf-8-sig"), Loader=_Loader)  # noqa: S506 - a SafeLoader
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except OSError as error:
        raise UserError(explain(error)) from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text ({error.reason})") from None
    except yaml.MarkedYAMLError as error:
        line = f":{error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UserError(f"{path}{line}: {error.problem}") from None
    except RecursionError:
        raise UserError(f"{path}: nested too deeply") from None
    except (yaml.YAMLError, ValueError, AttributeError) as error:
        # PyYAML lets the errors of dates, floats and huge integers through as they are.
        raise UserError(f"{path}: {error}") from None
    if not isinstance(value, dict):
        raise UserError(f"{path}: expected keys and values, found {type(value).__name__}")
    return value


class _Dumper(yaml.SafeDumper):
    """Canonical text: no aliases, floats that read back as floats."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _float(dumper: _Dumper, value: float) -> yaml.ScalarNode:
    # repr gives 5e-05, which YAML 1.1 reads as text; a mantissa with a point is a number.
    text = re.sub(r"^(-?\d+)e", r"\1.0e", repr(value))
    return dumper.represent_scalar("tag:yaml.org,2002:float", text)


_Dumper.add_representer(float, _float)


def canonical(value: dict[str, Any]) -> str:
    """Return the one text of a mapping: keys in the schema's order, block style."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)
