"""`python -m respo.reporting.table ID --study results/STUDY`: make a table.

Writes `tables/ID.csv`, `.md`, `.html` and `.tex` in the study's folder, from what lies there: a
partial grid gives a partial table whose notes say what is missing.
"""

import argparse
from pathlib import Path

from respo.cli import command
from respo.files import write_text
from respo.reporting import registry, tables
from respo.reporting.results import Results


@command
def main() -> None:
    """Parse the command line and write the table in every format."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("id", choices=registry.ids(tables), help="the table")
    parser.add_argument("--study", type=Path, required=True, help="folder results/STUDY")
    options = parser.parse_args()
    results = Results(options.study)
    texts = registry.module(tables, options.id).render(results)
    for suffix, text in texts.items():
        path = results.folder / "tables" / f"{options.id}.{suffix}"
        write_text(path, text)
        print(path)


if __name__ == "__main__":
    main()
