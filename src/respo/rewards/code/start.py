"""The command that starts Python with the modules of `inside`."""

from functools import cache
from pathlib import Path
from typing import Any

# In the order of their imports. They travel as text, for the sandbox does not see this folder.
_MODULES = ("system", "seccomp", "limits", "programs", "mounts", "runner")
_PACKAGE = "respo.rewards.code.inside"

_BOOT = """
import sys, types
def module(name):
    made = sys.modules[name] = types.ModuleType(name)
    made.__path__ = []
    return vars(made)
package = ""
for part in {package!r}.split("."):
    package = (package + "." + part).lstrip(".")
    module(package)
for name, text in {modules!r}.items():
    exec(compile(text, name, "exec"), module(package + "." + name))
"""


def python_command(
    python: str, packages: str | None, mounts: dict[str, Any] | None = None
) -> list[str]:
    """Return the command for the runner.

    Args:
        python: the interpreter.
        packages: a folder to import from besides the standard library.
        mounts: arguments of `respo.rewards.code.inside.mounts.enter`, to be called first.
    """
    lines = [_boot()]
    if mounts is not None:
        lines.append(f"from {_PACKAGE}.mounts import enter; enter(**{mounts!r})")
    if packages is not None:
        lines.append(f"sys.path.append({packages!r})")
    lines.append(f"from {_PACKAGE}.runner import main; main()")
    return [python, "-S", "-s", "-B", "-c", "\n".join(lines)]


@cache
def _boot() -> str:
    folder = Path(__file__).parent / "inside"
    modules = {name: (folder / f"{name}.py").read_text(encoding="utf-8") for name in _MODULES}
    return _BOOT.format(package=_PACKAGE, modules=modules)
