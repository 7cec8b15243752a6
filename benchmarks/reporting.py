"""All tables and figures and the page of the ReSPO study, in full size.

Made-up results of 31 runs of up to 1,024 updates and 29 x 7,384 responses (`synthetic.py`, whose
time does not count). Each table and figure is made as Snakemake makes it, by a process of its
own, so that Python's start and its imports count, and so is the page. Memory is the peak of the
process. No other project makes them, so there is no peer.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.dag import ROOT, measured
from benchmarks.race import Row, Taken, compare, main
from benchmarks.synthetic import CONFIG, write_study
from respo.reporting.results import Results

STUDY = "respo"


def rows(quick: bool) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as temporary:
        folder = write_study(Path(temporary), "tiny" if quick else STUDY)
        study = Results(folder).study.study
        wanted = [("table", id_) for id_ in study.tables]
        wanted += [("figure", id_) for id_ in study.figures]
        wanted = [*wanted[: 1 if quick else None], ("page", "")]
        found = {each: make(*each, folder) for each in wanted}
        for (kind, id_), (taken, _) in found.items():
            yield compare(f"{kind} {id_}".strip(), "s", [taken])
        alls = [taken for taken, _ in found.values()]
        total = Taken(sum(each.cpu for each in alls), sum(each.wall for each in alls))
        yield compare(f"all {len(found)}, one after the other", "s", [total])
        yield Row("the largest: memory", "MB", [max(mb for _, mb in found.values())])


def make(kind: str, id_: str, folder: Path) -> tuple[Taken, float]:
    """Make a table, a figure or the page; return what it took and peak megabytes."""
    command = [sys.executable, "-m", f"respo.reporting.{kind}"]
    command += [*filter(None, [id_]), "--study", str(folder)]
    if kind == "table":
        command += ["--reference", str(CONFIG / "reference")]
    return measured(command, ROOT)


if __name__ == "__main__":
    main(rows, __doc__)
