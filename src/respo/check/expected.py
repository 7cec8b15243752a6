"""The files that a study has when it is done, each with the target that makes it."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from respo.config import ResolvedStudy, Run
from respo.provenance.inside import MANIFEST
from respo.provenance.sources import record_of
from respo.reporting.table import suffixes
from respo.training.outputs import TABLES

# Beside what is expected: of the workflow, of trainers, of evaluations, of a pack.
BESIDE = re.compile(
    r"(logs|benchmarks)/.*"
    r"|(.*/)?\.lock"
    r"|.*/eval/\d+/[^/]+/\.shards/.*"
    r"|.*/seed\d+/(checkpoints/state|verl|steps|stacks|ray|tensorboard|wandb)/.*"
    r"|.*/seed\d+/updates\.jsonl"
    rf"|{MANIFEST}|reference/[^/]+\.csv"
    # Results of older versions lack it.
    r"|report\.sources\.json"
)
# What a pack may come without: parts of names by kind.
LEFT_OUT = {
    "checkpoints": ("/weights", "/checkpoints/"),
    "generations": ("/generations.parquet",),
    "page": ("explore.html", "explore.sources.json"),  # shows responses
    "report": ("report.html",),
}
LEFT_OVER = re.compile(r"(.*/)?\.[^/]+\.part(/.*)?")


class Expected(NamedTuple):
    """A file, or a folder of weights, below the study's folder.

    Attributes:
        name: of the file.
        target: what makes it.
        needs: that without which it cannot be there; of both only this one is missed.
    """

    name: str
    target: str
    needs: str | None = None


def weights(study: ResolvedStudy) -> Iterator[Expected]:
    """Yield the folders of checkpoints in Hugging Face's format."""
    for model in study.local_models():
        record = f"initial/{model}/initial.json"
        yield Expected(f"initial/{model}/weights", record, record)
    for run in study.runs():
        train = f"{run.name}/train.json"
        for update in study.training(run).checkpoints:
            yield Expected(f"{run.name}/checkpoints/{update}", train, train)


def files(study: ResolvedStudy, papers: Path | None) -> Iterator[Expected]:
    """Yield all else.

    Args:
        study: as its `study.yaml` has it.
        papers: `config/reference`, None where the papers' numbers are not at hand.
    """
    yield Expected("study.yaml", "study.yaml")
    for side, rows in (("train", study.datasets), ("held_out", study.benchmarks)):
        for name in rows:
            for suffix in ("yaml", "parquet"):
                yield Expected(target := f"data/{side}/{name}.{suffix}", target)
    for model in study.models:
        for file in ("config.yaml", "initial.json"):
            yield Expected(target := f"initial/{model}/{file}", target)
    for run in study.runs():
        train = f"{run.name}/train.json"
        yield Expected(f"{run.name}/config.yaml", f"{run.name}/config.yaml", train)
        yield Expected(train, train)
        for table in TABLES:
            yield Expected(f"{run.name}/{table}", train, train)
    for run in study.evaluated():
        if run.is_baseline:
            yield Expected(train := f"{run.name}/train.json", train)
        for cell in cells(study, run):
            yield Expected(f"{cell}/cell.json", f"{cell}/cell.json", f"{run.name}/train.json")
            for file in ("scores", "generations"):
                target = f"{cell}/{file}.parquet"
                yield Expected(target, target, f"{cell}/cell.json")
    yield from products(study, papers)


def cells(study: ResolvedStudy, run: Run) -> list[str]:
    """Return the folders of a run's cells."""
    return [
        f"{run.name}/eval/{update}/{benchmark}"
        for update in study.checkpoints(run)
        for benchmark in study.benchmarks
    ]


def products(study: ResolvedStudy, papers: Path | None) -> Iterator[Expected]:
    """Yield tables, figures, page, each with its record, and the report."""
    for table in study.study.tables:
        target = f"tables/{table}.md"
        for suffix in suffixes(table, study, papers):
            yield Expected(f"tables/{table}.{suffix}", target, target)
        yield _record(target)
    for figure in study.study.figures:
        target = f"figures/{figure}.png"
        for suffix in ("png", "pdf"):
            yield Expected(f"figures/{figure}.{suffix}", target, target)
        yield _record(target)
    yield Expected("explore.html", "explore.html")
    yield _record("explore.html")
    yield Expected("report.html", "report.html")


def _record(target: str) -> Expected:
    return Expected(record_of(Path(target)).as_posix(), target, target)


def is_left_out(name: str, kinds: Iterable[str]) -> bool:
    """Tell whether a file is of one of the kinds that a pack comes without."""
    return any(part in name for kind in kinds for part in LEFT_OUT.get(kind, ()))
