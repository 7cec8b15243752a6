"""The identity of an objective's formula: a hash of the code that makes it."""

import ast
import hashlib
import importlib.util
import inspect
from collections.abc import Iterator
from pathlib import Path

from respo.objectives import registry
from respo.objectives.own import PACKAGE as OWN_PACKAGE
from respo.objectives.own import own_folder

FOLDER = Path(__file__).parent
# What is between a log-ratio and a gradient for every objective.
SHARED = tuple(FOLDER / f"{n}.py" for n in ("advantages", "coefficients", "loss", "ratios"))
# What an objective imports to declare itself.
NO_FORMULA = tuple(FOLDER / f"{name}.py" for name in ("registry", "parameters"))


def code_hash(name: str) -> str:
    """Return 12 hex digits that identify the formula of an objective.

    They change with the code of the objective's file, of the files beside it and the objectives
    that it imports, and of the modules that every objective goes through, and with nothing else:
    comments, blank lines and docstrings do not count. The files are read anew at each call.
    Comparable between runs of the same minor version of Python, whose printer of syntax trees it
    uses.
    """
    sources: dict[Path, str] = {}
    objective = registry.get(name)
    to_read = [Path(inspect.getfile(inspect.unwrap(objective.function))), *SHARED]
    if objective.registered_in:
        to_read.append(objective.registered_in)
    while to_read:
        path = to_read.pop()
        if path not in sources and path not in NO_FORMULA:
            sources[path] = importlib.util.decode_source(path.read_bytes())
            if path not in SHARED:
                to_read += _imported(sources[path], path)
    hashes = sorted(f"{path.name} {source_hash(source)}" for path, source in sources.items())
    return hashlib.sha256("\n".join(hashes).encode()).hexdigest()[:12]


def source_hash(source: str) -> str:
    """Return 12 hex digits of the SHA-256 of Python source without comments and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) and (ast.get_docstring(node, clean=False) is not None):
            node.body = node.body[1:] or [ast.Pass()]
    return hashlib.sha256(ast.unparse(tree).encode()).hexdigest()[:12]


def _imported(source: str, path: Path) -> Iterator[Path]:
    """Yield the files of this package and of the user's folder that a source imports."""
    packages = {str(__package__): FOLDER, OWN_PACKAGE: own_folder()}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            named = [(0, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            module = f"{node.module}." if node.module else ""
            named = [(node.level, f"{module}{alias.name}") for alias in node.names]
        else:
            continue
        for level, name in named:
            if level:
                yield from _files(path.parents[level - 1], name)
            for package, folder in packages.items():
                if not level and folder and name.startswith(f"{package}."):
                    yield from _files(folder, name.removeprefix(f"{package}."))


def _files(folder: Path, name: str) -> Iterator[Path]:
    """Yield the files that importing `name`, a module or what is in one, reads below a folder."""
    for part in name.split("."):
        for path in (folder / f"{part}.py", folder / part / "__init__.py"):
            if path.is_file():
                yield path
        folder = folder / part
