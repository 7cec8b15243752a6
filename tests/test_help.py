"""Every command says how it is typed, and `--help` does nothing else."""

import importlib
from pathlib import Path

import pytest

import respo

PACKAGE = Path(respo.__file__).parent
COMMANDS = [
    ".".join(["respo", *path.relative_to(PACKAGE).with_suffix("").parts])
    for path in sorted(PACKAGE.rglob("*.py"))
    if "\n@command\ndef main() -> None:" in path.read_text()
]


def test_the_commands_are_found() -> None:
    assert {"respo.config.document", "respo.gpus", "respo.data.__main__"} <= set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_the_command_to_type(name, monkeypatch, capsys) -> None:
    module = importlib.import_module(name)
    monkeypatch.setattr("sys.argv", ["x", "--help"])
    with pytest.raises(SystemExit) as end:
        module.main()
    assert end.value.code == 0
    usage = " ".join(capsys.readouterr().out.split())
    assert usage.startswith(f"usage: python -m {name.removesuffix('.__main__')} [-h]")
