"""How long steps took, from what the workflow notes in `results/STUDY/benchmarks`.

These files, and the times in `train.json`, are the only ones that differ between two studies that
are the same in all else.
"""

import csv
from pathlib import Path

from respo.provenance.inside import is_other


def duration(study_folder: Path, job: str) -> float | None:
    """Return the wall time of a job in seconds, None where it is not noted.

    Args:
        study_folder: `results/STUDY`.
        job: its file below `benchmarks`, without the suffix.
    """
    path = study_folder / "benchmarks" / f"{job}.tsv"
    if is_other(path):
        return None
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        return float(rows[-1]["s"])
    except (OSError, ValueError, KeyError, IndexError, TypeError):
        return None
