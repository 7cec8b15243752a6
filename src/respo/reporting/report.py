"""`python -m respo.reporting.report --study results/STUDY`: note what report.html was made from.

Snakemake makes the report. `report.sources.json` beside it has its hash, and those of the tables,
figures and page that it shows.
"""

import argparse
from pathlib import Path

from respo.cli import command
from respo.config import load_resolved_study
from respo.files import sha256_of
from respo.provenance.sources import digest, shown_in_report, write_sources

NAME = "report.html"


@command
def main() -> None:
    """Parse the command line and write the record."""
    parser = argparse.ArgumentParser(prog="python -m respo.reporting.report", description=__doc__)
    parser.add_argument("--study", type=Path, required=True, help="folder results/STUDY")
    folder = parser.parse_args().study
    study = load_resolved_study(folder / "study.yaml")
    files = {name: sha256_of(folder / name) for name in shown_in_report(study)}
    print(write_sources(folder, study.name, [folder / NAME], digest(files), files, "snakemake"))


if __name__ == "__main__":
    main()
