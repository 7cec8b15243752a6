"""Responses that are there already, beside the file that a job makes.

While a job goes on, each file of its folder holds the responses of about a minute: one that is
killed loses no more. When it is done they become one, `finished.parquet`, a second name of the
job's output that takes no space. Snakemake deletes an output before it makes it anew; the second
name stays, and with a K that was raised only the missing samples are sampled.

What is made otherwise, say, at another temperature, has a folder of its own beside this one, named
by a hash of all that its responses depend on. When a job is done, such folders go that nobody has
written to for a day, but for the latest two.
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from respo.cli import UserError
from respo.evaluation.engines import Response
from respo.parquet import parquet_batches, parquet_made_from, write_parquet

SECONDS = 60.0
FINISHED = "finished.parquet"
OTHERS = 2  # folders of other settings that are kept, however old
OTHERS_SECONDS = 86400.0  # since a folder was written to: nobody is at work there
SCHEMA = pa.schema(
    [
        ("problem_id", pa.string()),
        ("sample", pa.int32()),
        ("prompt", pa.string()),
        ("response", pa.string()),
        ("response_tokens", pa.int32()),
        ("truncated", pa.bool_()),
    ]
)


class Shards:
    """The files of one way to make responses, in a folder of its own below ``root``.

    Responses that were made in the same way are taken, whatever their number and the other problems
    were: same weights, sampling, engine, versions of packages and text of the prompt.

    Two jobs that write to the same folder do each other no harm.

    Attributes:
        folder: that of these files.
        earlier: where responses that were taken have been made, if not in this environment.
    """

    def __init__(self, root: Path, made_from: dict[str, Any], prompts: dict[str, str]):
        """Take notice of what is made from what; ``prompts`` are the texts by problem."""
        self.root, self.made_from, self.prompts = root, made_from, prompts
        self.folder = root / _name(made_from)
        self.earlier: list[dict[str, str]] = []
        self.waiting: list[Response] = []
        self.spent: set[Path] = set()  # files that hold nothing beside what the output will hold
        self.last = time.monotonic()

    def adopt(self, output: Path) -> None:
        """Take an output that is there: what somebody has deleted from it is sampled again."""
        with suppress(UserError):  # damaged
            if output.exists():
                self._link(output, self.root / _name(parquet_made_from(output)))

    def others(self) -> list[Path]:
        """Return the folders of other settings, the latest first."""
        folders = [path for path in self.root.glob("*/") if path != self.folder]
        return sorted(folders, key=_last_change, reverse=True)

    def read(self, samples: int) -> Iterator[Response]:
        """Yield the responses that are there, ``samples`` to a problem at most.

        Damaged files go.
        """
        for path in sorted(self.folder.glob("*.parquet")):
            try:
                provenance = parquet_made_from(path)
                if _work(provenance) == _work(self.made_from):
                    yield from self._read(path, samples, provenance)
            except UserError:
                path.unlink(missing_ok=True)

    def _read(self, path: Path, samples: int, provenance: dict[str, Any]) -> Iterator[Response]:
        taken = spare = False
        for batch in parquet_batches(path, SCHEMA.names):
            if set(batch.schema.names) != set(SCHEMA.names):
                raise UserError(f"{path}: columns are missing")
            for row in batch.to_pylist():
                prompt, now = row.pop("prompt"), self.prompts.get(row["problem_id"])
                if row["sample"] >= samples or now is None:
                    spare = True
                elif prompt == now:
                    if not taken:
                        self._remember(provenance)
                    taken = True
                    yield Response(**row)
        if not spare:
            self.spent.add(path)

    def add(self, responses: list[Response]) -> None:
        """Keep responses; write those that wait if it is time."""
        self.waiting += responses
        if time.monotonic() - self.last >= SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the responses that wait."""
        if not self.waiting:
            return
        rows = [
            {**response._asdict(), "prompt": self.prompts[response.problem_id]}
            for response in self.waiting
        ]
        path = self.folder / f"{time.time_ns()}.parquet"
        write_parquet(path, pa.Table.from_pylist(rows, SCHEMA), self.made_from)
        self.spent.add(path)
        self.waiting, self.last = [], time.monotonic()

    def finish(self, output: Path) -> int:
        """Keep the output in place of the files whose responses it holds.

        Returns:
            How many folders of other settings went, since they were too old.
        """
        finished = self.folder / FINISHED
        if finished.exists() and finished not in self.spent:
            finished.rename(self.folder / f"{time.time_ns()}.parquet")
        self._link(output, self.folder)
        for path in self.spent - {finished}:
            path.unlink(missing_ok=True)
        latest = time.time() - OTHERS_SECONDS
        old = [folder for folder in self.others()[OTHERS:] if _last_change(folder) < latest]
        for folder in old:
            shutil.rmtree(folder, ignore_errors=True)
        return len(old)

    @staticmethod
    def _link(output: Path, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        new = folder / f".{time.time_ns()}"
        try:
            try:
                os.link(output, new)
            except OSError:  # a file system without links
                shutil.copyfile(output, new)
            new.replace(folder / FINISHED)
        finally:
            # Where both are names of one file, replacing does nothing.
            new.unlink(missing_ok=True)

    def _remember(self, provenance: dict[str, Any]) -> None:
        for environment in (provenance.get("environment"), *provenance.get("earlier", ())):
            if environment not in (self.made_from.get("environment"), *self.earlier):
                self.earlier.append(environment)


def _name(provenance: dict[str, Any]) -> str:
    """Return the name of the folder of all that is made in the same way."""
    return hashlib.sha256(json.dumps(_work(provenance), sort_keys=True).encode()).hexdigest()[:12]


def _last_change(folder: Path) -> float:
    """Return when a file of a folder was made or went, in seconds."""
    try:
        return folder.stat().st_mtime
    except OSError:  # another job has removed it
        return 0.0


def _work(provenance: dict[str, Any]) -> dict[str, Any]:
    """What a response depends on, of the provenance of a file.

    The sampler's own code has a hash of its own; the revision changes with every commit. The
    processor is told, but nodes of a cluster differ in it: their responses go together.
    """
    work = {
        key: value
        for key, value in provenance.items()
        if key not in ("benchmark", "benchmark_sha256", "earlier")
    }
    told = ("code", "respo", "processor")
    for group, left_out in (("sampling", ("samples",)), ("environment", told)):
        if isinstance(values := work.get(group), dict):
            work[group] = {k: value for k, value in values.items() if k not in left_out}
    return work
