"""Results that are made up, to try and time the reporting."""

import shlex
from pathlib import Path

MADE_UP = "its numbers are made up (synthetic)"


def is_synthetic(digits: str | None) -> bool:
    """Tell of the digits that a table or figure carries whether they are of made-up results."""
    return (digits or "").startswith("synthetic-")


def made_up_by(study_folder: Path, study: str) -> str:
    """Return the command that makes up a whole results folder.

    Args:
        study_folder: `results/STUDY`.
        study: its name.
    """
    out = shlex.quote(str(study_folder.absolute().parent))
    return f"python -m benchmarks.synthetic --study {shlex.quote(study)} --out {out}"
