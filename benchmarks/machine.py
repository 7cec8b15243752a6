"""What a figure was measured on."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("torch", "transformers", "trl", "verl", "math-verify", "numpy", "scipy", "snakemake")


def machine() -> str:
    """Return system, architecture, processor and the number of processors."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    cpu = next((line.split(": ")[1] for line in lines if line.startswith("model name")), "")
    system = f"{platform.system()} {platform.machine()}"
    return ", ".join(filter(None, [system, cpu, f"{os.cpu_count()} processors"]))


def versions() -> str:
    """Return the versions of Python and of what is compared, as far as installed."""
    known = [f"Python {platform.python_version()}"]
    for name in PACKAGES:
        try:
            known.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(known)
