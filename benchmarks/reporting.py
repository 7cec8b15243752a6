"""Time and memory of all tables and figures and the page of the ReSPO study, in full size.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/reporting.py

Made-up results of 31 runs of up to 1,024 updates and 29 x 7,384 responses (`synthetic.py`, whose
time does not count). Each table and figure is made as Snakemake makes it, by a process of its own,
so that Python's start and its imports count, and so is the page; as many at a time as there are
processors. Memory is the peak of the largest process, and of all that run at one moment at most its
sum over as many of the largest. With `--results FOLDER` the results of an earlier `synthetic.py`
are used.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from machine import machine
from synthetic import CONFIG, write_study

from respo.reporting.results import Results

# What it takes is printed by the child itself. Linux keeps VmHWM for a program, but ru_maxrss for a
# process, which begins as a copy of this one.
CHILD = """
import re, runpy, sys, time
from pathlib import Path
module, *sys.argv = sys.argv[1:]
sys.argv.insert(0, module)
runpy.run_module(module, run_name="__main__")
kilobytes = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]
print("USAGE", int(kilobytes) / 1024, time.process_time())
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--study", default="respo", help="a file of config/studies")
    parser.add_argument("--results", type=Path, help="folder of synthetic.py; made if left out")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (
            options.results / options.study
            if options.results
            else write_study(Path(temporary), options.study)
        )
        study = Results(folder).study.study
        wanted = [("table", id_) for id_ in study.tables] + [
            ("figure", id_) for id_ in study.figures
        ]
        wanted += [("page", "")]
        start = time.perf_counter()
        with ThreadPoolExecutor(options.processes) as pool:
            made = list(pool.map(lambda each: make(*each, folder), wanted))
        wall = time.perf_counter() - start
    for (kind, id_), (megabytes, cpu, seconds) in zip(wanted, made, strict=True):
        print(f"{kind:6s} {id_:12s} {seconds:6.1f} s  {cpu:6.1f} s CPU  {megabytes:6.0f} MB")
    memory = sorted((megabytes for megabytes, _, _ in made), reverse=True)
    cpu = sum(cpu for _, cpu, _ in made)
    print(
        f"all {len(made)}: {wall:.1f} s ({cpu:.1f} s CPU) with {options.processes} processes, "
        f"largest {memory[0]:.0f} MB, at one moment at most {sum(memory[: options.processes]):.0f} "
        f"MB; {machine()}"
    )


def make(kind: str, id_: str, folder: Path) -> tuple[float, float, float]:
    """Make a table, a figure or the page; return peak megabytes, CPU seconds and wall seconds."""
    command = [sys.executable, "-c", CHILD, f"respo.reporting.{kind}"]
    command += [*filter(None, [id_]), "--study", str(folder)]
    if kind == "table":
        command += ["--reference", str(CONFIG / "reference")]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{kind} {id_}: {done.stderr}")
    megabytes, cpu = done.stdout.rsplit("USAGE", 1)[1].split()
    return float(megabytes), float(cpu), time.perf_counter() - start


if __name__ == "__main__":
    main()
