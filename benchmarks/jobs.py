"""What a job costs beside its work: Snakemake's share, and the start of Python with its imports.

Snakemake's share of a job is the time of 150 jobs that do nothing, less the time of none, divided
by 150: for a rule with log, benchmark, message and parameters as ours have, against a bare one.
What ours takes more is `tee` for the log, and what watches the job to measure it; where the ratio
is near 1, or scatters to both sides of it, that is less than the noise of the machine.
A command's start is until its command line is read, against that of `python -c pass` with NumPy and
PyArrow, which all of ours need. That is a floor, so the ratio is below 1: beyond it are YAML, the
standard library and our own modules, for tables and figures the schema of the configuration, for
training torch. A job of Slurm starts Snakemake on its node, which reads the Snakefile: that is the
last row, and why small jobs go a dozen together (`group-components` of the profile).
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.dag import ROOT, measured, project
from benchmarks.race import Row, Taken, compare, main

JOBS = 150
BARE = """
rule all:
    input: expand("out/{{i}}", i=range({jobs}))
rule one:
    output: "out/{{i}}"
    shell: "touch {{output}}"
"""
FULL = """
rule all:
    input: expand("out/{{i}}", i=range({jobs}))
rule one:
    output: "out/{{i}}"
    log: "logs/{{i}}.log"
    benchmark: "times/{{i}}.tsv"
    threads: 1
    resources: mem_mb=100, runtime=5
    params: text=lambda wildcards: f"number {{wildcards.i}}"
    message: "One {{wildcards.i}}"
    shell: "(echo {{params.text:q}} && touch {{output:q}}) 2>&1 | tee -i {{log:q}}"
"""
COMMANDS = (
    "respo.evaluation.score",
    "respo.evaluation.cell",
    "respo.evaluation.generate",
    "respo.training.local",
    "respo.reporting.table",
    "respo.reporting.figure",
)
FLOOR = "import numpy, pyarrow.parquet"


def rows(quick: bool) -> Iterator[Row]:
    rounds = 1 if quick else 3
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        pairs = [(share(folder, FULL), share(folder, BARE)) for _ in range(rounds)]
        ours, theirs = zip(*pairs, strict=True)
        yield compare("Snakemake's share of a job", "ms", list(ours), "bare rule", theirs)
        for command in COMMANDS[:1] if quick else COMMANDS:
            taken = [
                (
                    measured([sys.executable, "-m", command, "--help"], ROOT)[0],
                    measured([sys.executable, "-c", FLOOR], ROOT)[0],
                )
                for _ in range(rounds)
            ]
            ours, theirs = zip(*taken, strict=True)
            yield compare(f"start of {command}", "ms", list(ours), FLOOR, theirs)
        read = [sys.executable, "-m", "snakemake", "-n", "--config", "study=respo", "--cores", "1"]
        copy = project(folder / "project")
        target = ["--", "results/respo/study.yaml"]
        taken = [measured([*read, *target], copy)[0] for _ in range(rounds)]
        yield compare("Snakemake reads the Snakefile", "s", taken)


def share(folder: Path, text: str) -> Taken:
    """Return what snakemake takes for a job that does nothing."""
    taken = []
    for count in (0, JOBS):
        with tempfile.TemporaryDirectory(dir=folder) as run:
            (Path(run) / "Snakefile").write_text(text.format(jobs=count))
            command = [sys.executable, "-m", "snakemake", "--cores", "1", "--quiet", "all"]
            taken.append(measured(command, Path(run))[0])
    none, all_ = taken
    return Taken((all_.cpu - none.cpu) / JOBS, (all_.wall - none.wall) / JOBS)


if __name__ == "__main__":
    main(rows, __doc__)
