"""What there is of a study: its runs and cells, its products, and what has failed."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from respo.config import ResolvedStudy, Run
from respo.status import evaluations, logs, traces
from respo.status.evaluations import Evaluation
from respo.status.traces import Progress

TABLE_SUFFIXES = ("md", "html", "tex", "csv")
FIGURE_SUFFIXES = ("pdf", "png")


@dataclass(frozen=True)
class Count:
    """So many of all are there."""

    done: int
    of: int


@dataclass(frozen=True)
class Failure:
    """The last words of a job, and its log."""

    job: str
    message: str
    log: Path


@dataclass(frozen=True)
class RunStatus:
    """A run or baseline, and its cells: none where it is not evaluated.

    Attributes:
        run: which one.
        training: `done` for a baseline, and for a run that is trained.
        cells: those that are there.
        evaluations: cells that are at work, have stopped or failed.
    """

    run: Run
    training: Progress
    cells: Count
    evaluations: list[Evaluation]


@dataclass(frozen=True)
class Status:
    """A study at one moment; `counts` are in the order in which things are made."""

    folder: Path
    study: str
    title: str
    counts: dict[str, Count]
    initial: dict[str, Progress]
    runs: list[RunStatus]
    failures: list[Failure]


def look(study: ResolvedStudy, folder: Path) -> Status:
    """Look at what lies in the folder `results/STUDY`; nothing of it need be there."""
    view = _View(study, folder)
    data = _count(view.has(f"data/{name}", "parquet") for name in _data(study))
    initial = {model: view.initial(model) for model in study.models}
    runs = [view.run(run) for run in dict.fromkeys([*study.evaluated(), *study.runs()])]
    names = study.study
    counts = {
        "data": data,
        "initial weights": _count(progress.state == "done" for progress in initial.values()),
        "runs": _count(s.training.state == "done" for s in runs if not s.run.is_baseline),
        "cells": Count(sum(s.cells.done for s in runs), sum(s.cells.of for s in runs)),
        "tables": _count(view.has(f"tables/{name}", *TABLE_SUFFIXES) for name in names.tables),
        "figures": _count(view.has(f"figures/{name}", *FIGURE_SUFFIXES) for name in names.figures),
        "report": _count([view.has("report", "html")]),
    }
    return Status(folder, study.name, names.title, counts, initial, runs, view.failures)


@dataclass
class _View:
    """Looks at one thing after the other and keeps what has failed."""

    study: ResolvedStudy
    folder: Path
    failures: list[Failure] = field(default_factory=list)

    def has(self, name: str, *suffixes: str) -> bool:
        """Tell whether all files of a product are there."""
        there = all((self.folder / f"{name}.{suffix}").is_file() for suffix in suffixes)
        if not there and (message := logs.failure(logs.lines(self._log(name)))):
            self.failures.append(Failure(name, message, self._log(name)))
        return there

    def initial(self, model: str) -> Progress:
        """Look at the initial weights of a model."""
        name = f"initial/{model}"
        return self._noted(name, traces.of_initial(self.folder / name, self._log(name)))

    def run(self, run: Run) -> RunStatus:
        """Look at a run, and at its cells if it is trained: those of an older one do not count."""
        folder, name = run.folder(self.folder), f"train/{run.name}"
        if run.is_baseline:
            is_there = (folder / "train.json").is_file()
            progress = Progress("done" if is_there else "waiting")
        else:
            updates = self.study.training(run).updates
            progress = traces.of_run(folder, self._log(name), updates, run.staleness)
            progress = self._noted(name, progress)
        cells = self._cells(run)
        if progress.state != "done":
            return RunStatus(run, progress, Count(0, len(cells)), [])
        looked = [self._evaluation(run, *cell) for cell in cells]
        missing = [evaluation for evaluation in looked if evaluation is not None]
        begun = [e for e in missing if e.progress.state != "waiting"]
        return RunStatus(run, progress, Count(len(cells) - len(missing), len(cells)), begun)

    def _cells(self, run: Run) -> list[tuple[int, str]]:
        if run not in self._evaluated:
            return []
        updates, benchmarks = self.study.checkpoints(run), self.study.study.benchmarks
        return [(update, benchmark) for update in updates for benchmark in benchmarks]

    def _evaluation(self, run: Run, update: int, benchmark: str) -> Evaluation | None:
        name = f"{run.name}/{update}/{benchmark}"
        folder = run.cell(self.folder, update, benchmark).parent
        found = evaluations.look(name, folder, self._log)
        if found:
            self._noted(found.job, found.progress)
        return found

    def _noted(self, job: str, progress: Progress) -> Progress:
        if progress.state == "failed":
            self.failures.append(Failure(job, progress.message, self._log(job)))
        return progress

    def _log(self, job: str) -> Path:
        return self.folder / "logs" / f"{job}.log"

    @cached_property
    def _evaluated(self) -> set[Run]:
        return set(self.study.evaluated())


def _data(study: ResolvedStudy) -> list[str]:
    return [
        *(f"train/{name}" for name in study.datasets),
        *(f"held_out/{name}" for name in study.benchmarks),
    ]


def _count(there: Iterable[bool]) -> Count:
    each = list(there)
    return Count(sum(each), len(each))
