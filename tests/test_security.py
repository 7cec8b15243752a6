"""What docs/security.md promises of the whole tree, where no rule of ruff's (`S`) holds it."""

import ast
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
RULES = sorted((ROOT / "workflow" / "rules").glob("*.smk"))
CONFIGS = sorted((ROOT / "config").glob("*/*.yaml"))
# Of a shell command what needs no quotes: numbers, and words of ours.
PLAIN = {
    *("resources.cards", "threads", "wildcards.checkpoint", "wildcards.staleness"),
    *("wildcards.seed", "params.samples", "params.temperature", "params.top_p", "params.seed"),
    *("params.limit", "params.prompt_limit", "params.thinking", "params.environment"),
}


def shell_commands(text: str) -> list[str]:
    """Return what stands below each `shell:`, up to the next directive or rule."""
    return re.findall(r"^ +shell:\n((?: {8,}.*\n|\n| +#.*\n)+)", text, re.MULTILINE)


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_what_stands_in_a_shell_command_is_quoted(path: Path) -> None:
    for command in shell_commands(path.read_text()):
        for name in re.findall(r"\{([^{}]*)\}", command):
            assert name.endswith(":q") or name in PLAIN, f"{path.name}: {{{name}}}"
        assert not re.search(r"""^ *f["']""", command, re.MULTILINE), "text that is put in unquoted"


def test_shell_commands_are_found() -> None:
    found = [command for path in RULES for command in shell_commands(path.read_text())]
    assert len(found) == sum(path.read_text().count(" shell:\n") for path in RULES)
    assert sum("{" in command for command in found) > 10


def calls() -> list[tuple[str, str, ast.Call]]:
    """Return the calls of the package: file, what is called, the call."""
    found = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                found.append((path.name, ast.unparse(node.func), node))
    return found


def test_no_code_of_a_model_is_run_and_nothing_pickled_read() -> None:
    for file, name, call in calls():
        options = {option.arg: ast.unparse(option.value) for option in call.keywords}
        assert options.get("trust_remote_code", "False") == "False", file
        assert name not in ("torch.load", "np.load", "numpy.load", "pickle.loads", "marshal.loads")
        if name.endswith("from_pretrained"):
            assert options.get("local_files_only") == "True", file


def test_nothing_goes_through_a_shell() -> None:
    for file, name, call in calls():
        assert name not in ("os.system", "os.popen", "subprocess.getoutput"), file
        assert "shell" not in {option.arg for option in call.keywords}, file


def pinned(values: object) -> list[tuple[str, str]]:
    """Return each repository of the hub that a configuration names, with its revision."""
    if isinstance(values, list):
        return [pair for value in values for pair in pinned(value)]
    if not isinstance(values, dict):
        return []
    here = [(values["hub"], str(values.get("revision")))] if "hub" in values else []
    return here + [pair for value in values.values() for pair in pinned(value)]


def test_downloads_are_pinned_to_a_commit() -> None:
    found = [pair for path in CONFIGS for pair in pinned(yaml.safe_load(path.read_text()))]
    assert len(found) > 20
    for repository, revision in found:
        assert re.fullmatch("[0-9a-f]{40}", revision), repository
