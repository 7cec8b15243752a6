"""Kill a study again and again, start it again each time, and compare with an unbroken one.

    python tests/faults/drill.py CHECKOUT --study mini --unbroken OTHER/results/mini --kills 20

CHECKOUT is a copy of the project without results; `--unbroken` has the results of the same study,
made without a kill. Moments are random, by `--seed`: some jobs after the last kill, and up to
`--delay` seconds later. In turn all processes are killed, snakemake alone (its jobs live on while
the next one starts) or one job alone; in turn with SIGKILL, SIGTERM and SIGINT. If the study is
done before all kills are, its results are deleted and it begins again.

Each kill is told with what ran at that moment. Exit code 1 if a start ended otherwise than by a
kill, or results differ.
"""

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from itertools import cycle, product
from pathlib import Path

import same_results

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
TARGETS = ("all", "snakemake", "job")
PATIENCE = 1800.0  # seconds for what is left of a study
STAGE = re.compile(r"respo\.(data|training|evaluation|reporting)\S*")


class Study:
    """Snakemake in a process group of its own, and what it runs."""

    def __init__(self, checkout: Path, study: str, log: Path) -> None:
        self.log = log
        with log.open("w") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "snakemake", "--cores", "2", "--config", f"study={study}"],
                cwd=checkout,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                # A shell that starts something in the background has it ignore Ctrl-C.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def end(self) -> int | None:
        """Wait for the end; return the exit code, None if there is no end."""
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            return None

    def jobs(self) -> dict[int, str]:
        """Return the processes of jobs that run, by their ids, with the stage that each is at."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                session = int((folder / "stat").read_text().rpartition(")")[2].split()[3])
                if session != self.process.pid:
                    continue
                command = (folder / "cmdline").read_bytes().decode().replace("\0", " ")
            except (OSError, ValueError):  # gone
                continue
            stage = STAGE.search(command)
            if stage and "python" in command.split()[0]:
                found[int(folder.name)] = stage[0].removeprefix("respo.")
        return found

    def started(self) -> int:
        """Return how many jobs have been started."""
        return self.log.read_text().count("\nJob ")

    def kill(self, target: str, number: signal.Signals, rng: random.Random) -> str:
        """Send a signal; return what it met."""
        jobs = self.jobs()
        met = ", ".join(sorted(set(jobs.values()))) or "snakemake alone"
        if target == "job" and jobs:
            victim = rng.choice(sorted(jobs))
            os.kill(victim, number)
            return f"{jobs[victim]} by itself"
        if target == "snakemake":
            os.kill(self.process.pid, number)
            return f"snakemake during {met}"
        for id_ in self.session():
            with suppress(ProcessLookupError):
                os.kill(id_, number)
        return f"all during {met}"

    def session(self) -> list[int]:
        """Return the ids of all processes that snakemake and its jobs have started."""
        ids = subprocess.run(
            ["ps", "-s", str(self.process.pid), "-o", "pid="], capture_output=True, text=True
        )
        return [int(id_) for id_ in ids.stdout.split()]


def main() -> None:
    """Parse the command line, kill and compare."""
    parser = argparse.ArgumentParser(prog="python tests/faults/drill.py", description=__doc__)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--study", required=True)
    parser.add_argument("--unbroken", type=Path, required=True, help="results to compare with")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=3, help="at most, from one kill to the next")
    parser.add_argument("--delay", type=float, default=2.0, help="seconds at most, after a start")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    blows = cycle(product(TARGETS, SIGNALS))
    results = options.checkout / "results" / options.study
    met: Counter[str] = Counter()
    kills = starts = bad = 0
    while True:
        starts += 1
        study = Study(options.checkout, options.study, options.checkout / f"start{starts}.log")
        struck = False  # by what ends it
        failures = False  # a job was killed by itself: snakemake goes on, and fails at its end
        while study.alive and kills < options.kills and not struck:
            wait(study, rng.randint(1, options.jobs), rng.uniform(0, options.delay))
            if not study.alive:
                break
            target, number = next(blows)
            what = study.kill(target, number, rng)
            kills += 1
            met |= {what: met[what] + 1}
            print(f"{kills:3d} {number.name:7s} {what}", flush=True)
            failures |= target == "job"
            struck = target != "job"
        code = study.end()
        if code is None:
            print(f"start {starts} does not end: {study.log}", flush=True)
            bad += 1
            break
        if code and not (struck or failures):
            print(f"start {starts} failed by itself: {study.log}", flush=True)
            bad += 1
            break
        if code == 0:
            bad += compare(options.unbroken, results)
            if kills >= options.kills:
                break
            print("done; once more from the beginning", flush=True)
            shutil.rmtree(results)
    print(f"{kills} kills, {starts} starts, {bad} differences or failures")
    sys.exit(1 if bad else 0)


def wait(study: Study, jobs: int, delay: float) -> None:
    """Wait until so many more jobs have been started, and so many seconds longer."""
    begun = study.started()
    while study.alive and study.started() < begun + jobs:
        time.sleep(0.05)
    end = time.monotonic() + delay
    while study.alive and time.monotonic() < end:
        time.sleep(0.05)


def compare(unbroken: Path, results: Path) -> int:
    """Tell each difference; return how many there are."""
    found = list(same_results.differences(unbroken, results))
    print("\n".join(found) or "the same results", flush=True)
    return len(found)


if __name__ == "__main__":
    main()
