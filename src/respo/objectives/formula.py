"""The identity of an objective's formula: a hash of the code that makes it."""

import ast
import hashlib
import importlib.util
import inspect
from collections.abc import Iterator
from pathlib import Path

from respo.objectives import registry
from respo.objectives.own import PACKAGE as OWN_PACKAGE

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
    to_read = [Path(inspect.getfile(registry.get(name).function)), *SHARED]
    while to_read:
        path = to_read.pop()
        if path not in sources and path not in NO_FORMULA:
            sources[path] = importlib.util.decode_source(path.read_bytes())
            if path not in SHARED:
                to_read += _imported(sources[path], path.parent)
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


def _imported(source: str, folder: Path) -> Iterator[Path]:
    """Yield the files of this package and of `folder` that a source imports."""
    packages = {__package__: FOLDER, OWN_PACKAGE: folder}
    for name in _imported_names(ast.parse(source)):
        for package, where in packages.items():
            if name.startswith(f"{package}."):
                path = where / f"{name.removeprefix(f'{package}.').partition('.')[0]}.py"
                if path.is_file():
                    yield path


def _imported_names(tree: ast.AST) -> Iterator[str]:
    """Yield the full names of everything that is imported, be it a module or in one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            # Only a file of one's own has another beside it to import relatively.
            module = f"{OWN_PACKAGE}.{node.module or ''}" if node.level else node.module or ""
            yield from (f"{module.rstrip('.')}.{alias.name}" for alias in node.names)
