"""What made a result: the code, Python, the machine and the packages."""

import functools
import importlib.metadata
import os
import platform
import subprocess
from contextlib import suppress
from pathlib import Path

# What makes results; a file beside it, such as a method of the user's own, is none of it.
CODE = (":/src", ":/workflow", ":/Snakefile")
NO_CHECKOUT = "not from a git checkout"


@functools.cache
def code_revision() -> str:
    """Git revision of the checkout, with ``-dirty`` where its code differs.

    ``not from a git checkout`` for an installed package, also within the checkout of something
    else; ``unknown`` where git is missing or refuses to tell.
    """

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", *arguments],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    if not any((folder / ".git").exists() for folder in Path(__file__).parents):
        return NO_CHECKOUT
    try:
        if not git("ls-files", "--", Path(__file__).name):
            return NO_CHECKOUT
        return git("rev-parse", "HEAD") + (
            "-dirty" if git("status", "--porcelain", "--", *CODE) else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


@functools.cache
def processor() -> str:
    """Model of the processor, as the system names it, and the number of its threads."""
    model = platform.processor() or platform.machine()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        model = next(
            (x.partition(":")[2].strip() for x in lines if x.startswith("model name")), model
        )
    return f"{model}, {os.cpu_count()} threads"


def environment(*packages: str) -> dict[str, str]:
    """Return what made a result: code revision, Python, machine, and versions of the packages.

    The machine is told by its kind: names of hosts and users are nobody else's business.
    """
    return {
        "respo": importlib.metadata.version("respo"),
        "code": code_revision(),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "processor": processor(),
        **{name: importlib.metadata.version(name) for name in packages},
    }
