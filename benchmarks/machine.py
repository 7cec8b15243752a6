"""What a figure was measured on."""

import platform
from pathlib import Path

import torch


def machine() -> str:
    """Return system, architecture, processor and the number of threads that torch uses."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    cpu = next((line.split(": ")[1] for line in lines if line.startswith("model name")), "")
    return f"{platform.system()} {platform.machine()} {cpu}, {torch.get_num_threads()} thread"
