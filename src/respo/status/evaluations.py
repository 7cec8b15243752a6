"""How far the evaluation of a checkpoint on a benchmark is, by its files and logs.

Its three jobs follow each other and hold no lock. One that has said something a moment ago is taken
to be at work: a job that was killed for so long too.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from respo.status import logs
from respo.status.traces import SILENT_SECONDS, Progress, changed

# The jobs of a cell: what each is doing, its name and its output.
JOBS = (
    ("generating", "generate", "generations.parquet"),
    ("scoring", "score", "scores.parquet"),
    ("counting", "cell", "cell.json"),
)


@dataclass(frozen=True)
class Evaluation:
    """A cell that is not there yet.

    Attributes:
        cell: MODEL/METHOD/N…/seed…/UPDATE/BENCHMARK.
        doing: what its next job does.
        job: name of that job.
        progress: of that job, in responses.
    """

    cell: str
    doing: str
    job: str
    progress: Progress


def look(cell: str, folder: Path, log_of: Callable[[str], Path]) -> Evaluation | None:
    """Look at a cell; None if it is there.

    Args:
        cell: its name.
        folder: of its files.
        log_of: gives the log of a job.
    """
    if (folder / "cell.json").is_file():
        return None
    doing, name, _ = next(job for job in JOBS if not (folder / job[2]).is_file())
    job = f"eval/{cell}.{name}"
    return Evaluation(cell, doing, job, _progress(folder, log_of(job)))


def _progress(folder: Path, log: Path) -> Progress:
    inputs = max(changed(folder / output) for _, _, output in JOBS)
    if changed(log) <= inputs:  # of an earlier time
        return Progress("waiting")
    tail = logs.lines(log)
    done, total, left = logs.told(tail) or (0, 0, None)
    if failure := logs.failure(tail):
        return Progress("failed", done, total, message=failure)
    kept = max(map(changed, folder.glob(".shards/*")), default=0.0)
    silent_seconds = time.time() - max(changed(log), kept)
    if logs.is_stopped(tail) or silent_seconds > SILENT_SECONDS:
        return Progress("stopped" if kept else "waiting", done, total)
    return Progress("running", done, total, left)
