"""From the id of a table or figure to its module, imported only when it is asked for."""

import importlib
import pkgutil
from types import ModuleType


def ids(package: ModuleType) -> list[str]:
    """List the ids of a package's modules: `respo_table1` is `respo/table1`."""
    return sorted(
        module.name.replace("_", "/", 1) for module in pkgutil.iter_modules(package.__path__)
    )


def module(package: ModuleType, id_: str) -> ModuleType:
    """Import the module of one of `ids`."""
    return importlib.import_module(f"{package.__name__}.{id_.replace('/', '_', 1)}")
