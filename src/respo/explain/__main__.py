"""`python -m respo.explain PATH`: where a result comes from, and whether that still holds.

PATH is a cell, scores, generations, metrics, a run, a checkpoint, rows, a table, a figure, a page,
a report, or the folder of a study. Printed are its study, the run's configuration and how it
differs from the defaults, inputs with revisions and hashes, code, versions and machine of each
step, times, and the command that makes it anew. It only reads.
"""

import argparse
import json
from pathlib import Path

from respo.cli import UserError, command, say
from respo.explain.text import lines
from respo.provenance.read import read


@command
def main() -> None:
    """Parse the command line and print."""
    parser = argparse.ArgumentParser(prog="python -m respo.explain", description=__doc__)
    parser.add_argument("path", metavar="PATH")
    parser.add_argument(
        "--study", type=Path, help="results/STUDY of a table or figure that lies elsewhere"
    )
    parser.add_argument("--all", action="store_true", help="list every setting and every source")
    parser.add_argument("--json", action="store_true", help="print it for a program")
    options = parser.parse_args()
    if not options.path:
        raise UserError("PATH is empty; give a file or folder of results")
    told = read(Path(options.path), options.study)
    if options.json:
        print(json.dumps(told, indent=2))
    else:
        say("\n".join(lines(told, everything=options.all)))


if __name__ == "__main__":
    main()
