"""Time and memory of planning: `snakemake -n` of the studies and of larger grids.

The studies of the three papers one after the other (an invocation plans one), then synthetic
grids: the methods, models, N, checkpoints and benchmarks of the ReSPO study with 1, 5 and 20
seeds; 20 is ten times the jobs of all three studies. Each is a process of its own, whose output
is thrown away; memory is its peak. The peer is Snakemake itself on a bare Snakefile with as many
jobs of the same form: training, three jobs for each cell, one for all. We plan with Snakemake, so
we cannot be faster than that: beyond it are our start (torch for the formulas that runs are bound
to, configuration) and, for each job, its resources, parameters, message, log and environment.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import yaml

from benchmarks.race import Row, Taken, compare, main
from respo.config import load_study
from respo.plan.costs import jobs

ROOT = Path(__file__).parents[1]
STUDIES = ("respo", "aspo", "maspo")
SEEDS = (1, 5, 20)
BARE = """
RUNS, CELLS = range({runs}), range({cells})
rule all:
    input: expand("cell/{{run}}/{{cell}}", run=RUNS, cell=CELLS)
rule train:
    output: "train/{{run}}"
    shell: "touch {{output}}"
rule generate:
    input: "train/{{run}}"
    output: "generations/{{run}}/{{cell}}"
    shell: "touch {{output}}"
rule score:
    input: "generations/{{run}}/{{cell}}"
    output: "scores/{{run}}/{{cell}}"
    shell: "touch {{output}}"
rule cell:
    input: "scores/{{run}}/{{cell}}", "train/{{run}}"
    output: "cell/{{run}}/{{cell}}"
    shell: "touch {{output}}"
"""


def rows(quick: bool) -> Iterator[Row]:
    rounds = 1 if quick else 2
    studies = ("tiny",) if quick else STUDIES
    with tempfile.TemporaryDirectory() as temporary:
        folder = project(Path(temporary) / "project")
        found = [[plan(folder, study) for study in studies] for _ in range(rounds)]
        for number, study in enumerate(studies):
            count = sum(jobs(load_study(folder / "config", study)).values())
            taken = [of[number][0] for of in found]
            yield compare(f"{study}, {count:,} jobs", "s", taken)
        sums = [Taken(sum(t.cpu for t, _ in of), sum(t.wall for t, _ in of)) for of in found]
        if len(studies) > 1:
            yield compare(f"these {len(studies)} studies", "s", sums)
        yield Row("the largest of them: memory", "MB", [max(mb for _, mb in of) for of in found])
        for seeds in (1,) if quick else SEEDS:
            grid(folder, seeds, quick)
            resolved = load_study(folder / "config", "grid")
            count, runs = sum(jobs(resolved).values()), len(resolved.runs())
            cells = len(resolved.study.benchmarks) * len(resolved.study.evaluation.updates)
            bare = Path(temporary) / f"bare{seeds}"
            bare.mkdir()
            (bare / "Snakefile").write_text(BARE.format(runs=runs, cells=cells))
            # Once: the largest takes a minute.
            pairs = [(plan(folder, "grid"), plan(bare))]
            ours, theirs = ([of[side] for of in pairs] for side in (0, 1))
            peer = "bare Snakemake"
            name = f"grid of {count:,} jobs"
            yield compare(name, "s", [t for t, _ in ours], peer, [t for t, _ in theirs])
            memory = ([mb for _, mb in side] for side in (ours, theirs))
            yield Row(f"{name}: memory", "MB", next(memory), peer, next(memory))


def project(folder: Path) -> Path:
    """Copy what Snakemake reads, so that a study can be added and no results are in the way."""
    for name in ("config", "envs", "profiles", "workflow"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy(ROOT / "Snakefile", folder)
    return folder


def grid(folder: Path, seeds: int, quick: bool) -> None:
    """Write the study `grid`."""
    study = yaml.safe_load((folder / "config/studies/respo.yaml").read_text())
    study |= {"seeds": list(range(1, seeds + 1)), "extra_runs": []}
    study["tables"].remove("respo/table8")  # of the extra runs
    if quick:
        study |= {"methods": ["respo"], "models": study["models"][:1], "staleness": [8]}
        study |= {"tables": ["respo/table1"], "figures": []}
    (folder / "config/studies/grid.yaml").write_text(yaml.safe_dump(study))


def plan(folder: Path, study: str | None = None) -> tuple[Taken, float]:
    """Return what a dry run takes, and its peak memory, MB."""
    command = [sys.executable, "-m", "snakemake", "-n", "--cores", "1"]
    if study:
        command += ["--config", f"study={study}"]
    return measured(command, folder)


def measured(command: list[str], folder: Path) -> tuple[Taken, float]:
    """Run a command; return what it took, all processes together, and its peak memory, MB."""
    start = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - start
        if process.returncode:
            output.seek(0)
            sys.exit(f"{' '.join(command)}: {output.read().decode()[-2000:]}")
    return Taken(usage.ru_utime + usage.ru_stime, wall), usage.ru_maxrss / 1024


if __name__ == "__main__":
    main(rows, __doc__)
