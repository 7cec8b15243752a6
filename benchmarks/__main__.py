"""`python -m benchmarks [NAME ...]`: measure, and write docs/benchmarks.md.

Each benchmark is a process of its own on one thread. With names only their sections of the page
are written anew. `./run bench [NAME ...]` installs what is compared with before that. `--quick` is
no measurement and leaves the page alone: its tables are printed.
"""

import argparse
import ast
import datetime
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.machine import machine, versions
from benchmarks.race import Row, table

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "benchmarks.md"
QUICK = "Quick: small sizes and few rounds, to see that it runs. These are no figures to quote."
# In the order of the page.
TITLES = {
    "objectives": "Objectives against verl",
    "trainer": "Local trainer against TRL",
    "sampler": "Sampler against transformers",
    "scoring": "Scoring against Math-Verify and verl",
    "statistics": "Bootstrap against SciPy",
    "reporting": "Tables, figures and page",
    "dag": "Planning against the number of jobs",
    "jobs": "Overhead per job",
}
HEAD = """# How fast it is

`./run bench` installs the peers, measures and writes this page; `./run bench NAME ...` writes some
of its sections anew.

Figures are processor time on one thread, or work done per second of processor time: medians over
some rounds, in which ours and the peer take turns (A B A B), so that other work on the machine
disturbs both alike. The ratio is how many times as fast, or as small, ours is, in each round:
above 1 ours is ahead, and where the range in brackets holds 1 there is no telling. It is the
median of the rounds' ratios, not the quotient of the two medians beside it. The last column is the
ratio by wall clock. Sections are measured one by one: revision, machine and load stand below each
title.
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(TITLES)}")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument(
        "--out",
        type=Path,
        help="the page (default: docs/benchmarks.md; with --quick the terminal)",
    )
    options = parser.parse_args()
    out = options.out or (None if options.quick else PAGE)
    if unknown := [name for name in options.names if name not in TITLES]:
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are: {', '.join(TITLES)}")
    failed = []
    for name in options.names or TITLES:
        print(f"{name} ...", file=sys.stderr, flush=True)
        rows = measure(name, options.quick)
        if rows is None:
            failed.append(name)
            continue
        text = "\n".join(section(name, rows, options.quick))
        if out:
            write(out, name, text)
        else:
            print(text, end="\n\n", flush=True)
    if failed:
        sys.exit(f"error: not measured, and left as before: {', '.join(failed)}")


def measure(name: str, quick: bool) -> list[Row] | None:
    """Run a benchmark; None, after its own message, if it failed."""
    one_thread = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "rows.json"
        command = [sys.executable, "-m", f"benchmarks.{name}", "--json", str(out)]
        command += ["--quick"] if quick else []
        subprocess.run(command, cwd=ROOT, env=os.environ | one_thread, stdout=subprocess.DEVNULL)
        return [Row(**row) for row in json.loads(out.read_text())] if out.exists() else None


def section(name: str, rows: list[Row], quick: bool = False) -> Iterator[str]:
    """Yield the lines of a section: what is measured, on what, and the table."""
    yield f"## {TITLES[name]}\n"
    # The description of a benchmark names the sizes of the whole of it.
    yield (QUICK if quick else description(name)) + "\n"
    today = datetime.datetime.now(datetime.UTC).date()
    load = os.getloadavg()[2]
    yield (
        f"Measured {today} at revision {revision(ROOT)}: {machine()}, load {load:.0f}; "
        f"{versions()}.\n"
    )
    yield from table(rows)


def description(name: str) -> str:
    """Return the docstring of a benchmark."""
    return ast.get_docstring(ast.parse((ROOT / f"benchmarks/{name}.py").read_text())) or ""


def revision(folder: Path) -> str:
    """Name the commit that is measured, `-dirty` if files have changed since; the page may have."""
    commit = git(folder, "describe", "--always").stdout.strip()
    changed = git(folder, "diff", "--quiet", "HEAD", "--", ".", ":!docs/benchmarks.md").returncode
    return f"{commit}-dirty" if commit and changed else commit or "unknown"


def git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True)


def write(path: Path, name: str, text: str) -> None:
    """Put a section in its place of the page, which is made if there is none."""
    page = path.read_text() if path.exists() else ""
    known = dict(re.findall(r"<!-- section (\w+) -->\n(.*?)\n<!-- end -->", page, re.DOTALL))
    known[name] = text
    parts = [
        f"<!-- section {name} -->\n{known[name]}\n<!-- end -->\n"
        for name in TITLES
        if name in known
    ]
    path.write_text("\n".join([HEAD, *parts]))


if __name__ == "__main__":
    main()
