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


def names_of_imports(tree: ast.AST) -> dict[str, str]:
    """Return what the names that a file imports stand for: `load` for `torch.load`."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def calls_in(text: str) -> list[tuple[str, ast.Call]]:
    """Return the calls of a file: what is called, by its whole name, and the call."""
    tree = ast.parse(text)
    imported = names_of_imports(tree)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            first, dot, rest = ast.unparse(node.func).partition(".")
            found.append((f"{imported.get(first, first)}{dot}{rest}", node))
    return found


def calls() -> list[tuple[str, str, ast.Call]]:
    """Return the calls of the package: file, what is called, the call."""
    return [
        (path.name, name, call)
        for path in SOURCES
        for name, call in calls_in(path.read_text(encoding="utf-8"))
    ]


def reads_pickles_or_archives(name: str) -> bool:
    """Tell whether a function runs what it reads, or writes wherever an archive says."""
    module, _, function = name.rpartition(".")
    if module in ("pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal"):
        return function in ("load", "loads", "Unpickler")
    loaders = ("torch.load", "torch.jit.load", "numpy.load", "shelve.open", "pandas.read_pickle")
    return name in (*loaders, "shutil.unpack_archive") or function in ("extract", "extractall")


def test_no_code_of_a_model_is_run_and_nothing_pickled_read() -> None:
    for file, name, call in calls():
        options = {option.arg: ast.unparse(option.value) for option in call.keywords}
        assert options.get("trust_remote_code", "False") == "False", file
        assert not reads_pickles_or_archives(name), f"{file}: {name}"
        if name.endswith("from_pretrained"):
            assert options.get("local_files_only") == "True", file


@pytest.mark.parametrize(
    "text",
    [
        "import torch; torch.load(p)",
        "from torch import load; load(p, weights_only=False)",
        "from torch import load as read; read(p)",
        "import torch as t; t.load(p)",
        "import pickle; pickle.load(file)",
        "import pickle; pickle.loads(data)",
        "from pickle import Unpickler; Unpickler(file).load()",
        "import numpy as np; np.load(p, allow_pickle=True)",
        "import tarfile; tarfile.open(p).extractall(there)",
        "import zipfile\nwith zipfile.ZipFile(p) as file:\n    file.extract(name)",
        "from shutil import unpack_archive; unpack_archive(p)",
    ],
)
def test_each_way_to_read_pickles_or_archives_is_found(text: str) -> None:
    assert any(reads_pickles_or_archives(name) for name, _ in calls_in(text))


def test_other_readers_are_let_be() -> None:
    text = "import json, yaml; json.load(f); yaml.safe_load(f); Cell.load(p); load(p); pq.read(p)"
    assert not any(reads_pickles_or_archives(name) for name, _ in calls_in(text))


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
