"""Finished responses of a job that goes on: one that is killed loses those of a minute."""

import shutil
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from respo.cli import UserError
from respo.evaluation.engines import Response
from respo.files import made_from, read_parquet, write_parquet

SECONDS = 60.0
SCHEMA = pa.schema(
    [
        ("problem_id", pa.string()),
        ("sample", pa.int32()),
        ("response", pa.string()),
        ("response_tokens", pa.int32()),
        ("truncated", pa.bool_()),
    ]
)


class Shards:
    """Files in a folder; each holds the responses of about a minute, and what they were made from.

    Two jobs that write to the same folder do each other no harm.
    """

    def __init__(self, folder: Path, made_from: dict[str, Any]):
        self.folder, self.made_from = folder, made_from
        self.waiting: list[Response] = []
        self.last = time.monotonic()

    def read(self) -> list[Response]:
        """Return the responses that are there; files of other work, and damaged ones, go."""
        found: list[Response] = []
        for path in sorted(self.folder.glob("*.parquet")):
            try:
                table = read_parquet(path, SCHEMA.names)
            except UserError:
                table = None
            if table is None or made_from(table) != self.made_from:
                path.unlink(missing_ok=True)
            else:
                found += [Response(**row) for row in table.to_pylist()]
        return found

    def add(self, responses: list[Response]) -> None:
        """Keep responses; write those that wait if it is time."""
        self.waiting += responses
        now = time.monotonic()
        if not self.waiting or now - self.last < SECONDS:
            return
        rows = [response._asdict() for response in self.waiting]
        path = self.folder / f"{time.time_ns()}.parquet"
        write_parquet(path, pa.Table.from_pylist(rows, SCHEMA), self.made_from)
        self.waiting, self.last = [], now

    def remove(self) -> None:
        """Delete them all: the job is done."""
        shutil.rmtree(self.folder, ignore_errors=True)
