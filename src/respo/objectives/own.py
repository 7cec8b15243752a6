"""Objectives of a folder outside the package, which the environment variable RESPO_METHODS names.

The folder is imported as the package `respo_own`, so that a file can use another one of it:
`from respo_own.helper import ...` or `from .helper import ...`.
"""

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

VARIABLE = "RESPO_METHODS"
PACKAGE = "respo_own"


def use_own(folder: Path) -> None:
    """Make the objectives of a folder known to this process and to those that it starts."""
    os.environ[VARIABLE] = str(folder.resolve())


def own_folder() -> Path | None:
    """Return the folder of one's own objectives, if there is one."""
    name = os.environ.get(VARIABLE)
    return Path(name) if name else None


def import_own(folder: Path) -> None:
    """Import every Python file of a folder anew, so that its objectives register themselves.

    Hidden files, which editors leave behind, are passed over.

    Raises:
        ValueError: no such folder, or a file that cannot be imported; it is named.
    """
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]
    if not folder.is_dir():
        raise ValueError(f"{VARIABLE}: {folder} is not a folder; correct or unset the variable")
    package = ModuleType(PACKAGE)
    package.__path__ = [str(folder)]
    sys.modules[PACKAGE] = package
    importlib.invalidate_caches()
    writes_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        for path in sorted(folder.glob("[!.]*.py")):
            _import_file(path)
    finally:
        sys.dont_write_bytecode = writes_bytecode


def _import_file(path: Path) -> None:
    try:
        importlib.util.decode_source(path.read_bytes())  # comments, too, must be readable
        importlib.import_module(f"{PACKAGE}.{path.stem}")
    except (Exception, SystemExit) as error:
        raise ValueError(f"{path}: {type(error).__name__}: {error}; mend the file") from error
