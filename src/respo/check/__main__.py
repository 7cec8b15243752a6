"""`python -m respo.check FOLDER`: is a results folder, or an unpacked pack, whole and true?

Needs no Snakemake and trains nothing. Read to the end is every file that the study expects:
Parquet, weights, records and configurations, with the checksums in them. Compared are the hashes
that files hold of each other, from the rows over weights, responses and scores to cells, tables and
figures. Computed again are cells, from the scores, and tables, from the cells.

Named are files that are damaged or do not belong together, with the command that makes them
anew; files that are missing, with the target that makes them; files that belong to nothing; and
links to elsewhere, which are followed, but not in a pack. A table or figure of a pack may be drawn
anew: it is named, and damaged only if it is not the same, byte for byte.
Exit code 1 if anything is damaged or missing.
"""

import argparse
import shlex
import sys
import time
from pathlib import Path

from respo.check.findings import Finding
from respo.check.folder import Folder
from respo.check.recompute import STUDY
from respo.check.whole import check_folder
from respo.cli import command, say
from respo.provenance.targets import command as command_around


@command
def main() -> None:
    """Parse the command line, check and tell."""
    parser = argparse.ArgumentParser(
        prog="python -m respo.check",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="such as results/tiny")
    parser.add_argument(
        "--skip-weights",
        action="store_true",
        help="read of weights the headers only: large models take a second per GB",
    )
    options = parser.parse_args()
    start = time.monotonic()
    folder = Folder(options.folder)
    counts = check_folder(folder, options.skip_weights)
    _tell_damaged(folder)
    _tell_missing(folder)
    _tell_others(folder, "foreign", folder.found.of("foreign"))
    _tell_others(folder, "elsewhere", folder.found.of("link"))
    _tell_others(folder, "drawn anew here", folder.found.of("redrawn"))
    _tell_others(folder, "not compared in full", folder.found.of("note"))
    if folder.found.ok:
        say(
            f"{folder.path}: whole. {counts.files} files, {counts.cells} cells summed up again, "
            f"{counts.tables} tables made again, {time.monotonic() - start:.0f} s"
        )
    else:
        say(
            f"{folder.path}: {len(folder.found.of('damaged'))} damaged, "
            f"{len(folder.found.of('missing'))} missing, of {counts.files} files"
        )
        sys.exit(1)


def _tell_damaged(folder: Folder) -> None:
    """Name each file, and the command that makes all of them anew, what comes first at first."""
    findings = folder.found.of("damaged")
    if not findings:
        return
    say("damaged, or of other files than lie there:")
    for finding in findings:
        say(f"  {folder.path / finding.name}: {finding.text}")
    targets = dict.fromkeys(finding.target for finding in findings if finding.target)
    if STUDY in targets:  # what else is wrong may follow from it, and is not to be made of it
        targets = {STUDY: None}
    if targets and not folder.manifest:
        around = command_around(folder.path, folder.study.name)
        below = around.before.removeprefix("snakemake ")
        place = f"cd {shlex.quote(around.where)} && " if around.where else ""
        words = " ".join(f"{below}{target}" for target in targets)
        say(f"  {place}snakemake --force {words}{around.after}")
        them, first = ("it", " then check again;") if STUDY in targets else ("them", "")
        say(f"  makes {them} anew;{first} then snakemake as usual, for what depends on {them}")


def _tell_missing(folder: Folder) -> None:
    """Name each file; all are targets of one command, or of what makes them."""
    findings = folder.found.of("missing")
    if not findings:
        return
    before, after, where = command_around(folder.path, folder.study.name)
    place = f", in {where}" if where else ""
    say("missing:" if folder.manifest else f"missing ({before}TARGET{after}{place}):")
    for finding in findings:
        made = f", target {finding.target}" if finding.target not in (None, finding.name) else ""
        say(f"  {finding.name}{made}{': ' if finding.text else ''}{finding.text}")


def _tell_others(folder: Folder, head: str, findings: list[Finding]) -> None:
    """Name a file for each thing that is to be said, and how many more there are."""
    if findings:
        say(f"{head}:")
    names: dict[str, list[str]] = {}
    for finding in findings:
        names.setdefault(finding.text, []).append(finding.name)
    for text, (first, *others) in names.items():
        more = f" and {len(others)} more" if others else ""
        say(f"  {folder.path / first}{more}: {text}")


if __name__ == "__main__":
    main()
