"""Compare two results folders of a study: `python tests/faults/same_results.py ONE OTHER`.

Byte for byte, but for times and what is made of them: how long a run took, how often it was
started, and the two pages that show it. Prints each difference; the exit code is 1 if there is one.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq

# Columns of the metrics, and keys of the records of runs and of initial weights: who worked on
# them, when and how long, and hashes over that.
TIMES = {"seconds", "tokens_per_second"}
VOLATILE = {"seconds", "peak_memory_mb", "restarts", "starts", "ended", "outputs", "self_sha256"}
# Logs and times of jobs; the two pages show them.
LEFT_OUT = ("logs/", "benchmarks/", "explore.", "report.")


def differences(one: Path, other: Path) -> Iterator[str]:
    """Yield a line for each file that is in one folder only, or differs."""
    here, there = files(one), files(other)
    for name in sorted(here ^ there):
        yield f"{name}: only in {one if name in here else other}"
    for name in sorted(here & there):
        if content(one / name) != content(other / name):
            yield f"{name}: differs"


def files(folder: Path) -> set[str]:
    """Return the results of a study, by their paths in its folder."""
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    return {
        name
        for name in names
        if not name.startswith(LEFT_OUT) and "/.shards/" not in name and not name.endswith("/.lock")
    }


def content(path: Path) -> object:
    """Return what must be equal: the bytes, or what a file says beside times."""
    if path.name == "metrics.parquet":
        table = pq.read_table(path)
        kept = [name for name in table.column_names if name not in TIMES]
        # As text, where NaN is NaN.
        return repr(table.select(kept).to_pydict()), table.schema.metadata
    if path.name in ("train.json", "initial.json"):
        record = json.loads(path.read_text())
        return {key: value for key, value in record.items() if key not in VOLATILE}
    return path.read_bytes()


if __name__ == "__main__":
    found = list(differences(Path(sys.argv[1]), Path(sys.argv[2])))
    for line in found:
        print(line)
    sys.exit(1 if found else 0)
