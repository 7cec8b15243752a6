"""`python -m respo.reporting.page --study results/STUDY`: write the page of a study.

Writes `explore.html` in the study's folder, from what lies there: one file that needs no other and
no network. A partial grid gives a partial page that names the targets of what is missing.
`explore.sources.json` beside it says what it was made from.
"""

import argparse
from pathlib import Path

from respo.cli import command
from respo.files import write_text
from respo.reporting.page.data import collect
from respo.reporting.page.document import SHOWN_IN_REPORT, page
from respo.reporting.results import Results

NAME = "explore.html"


@command
def main() -> None:
    """Parse the command line and write the page."""
    parser = argparse.ArgumentParser(prog="python -m respo.reporting.page", description=__doc__)
    parser.add_argument("--study", type=Path, required=True, help="folder results/STUDY")
    folder = parser.parse_args().study
    path = folder / NAME
    results = Results(folder)
    text = page(collect(results))
    write_text(path, text)
    results.record([path], "numpy")
    print(path)
    if len(text) > SHOWN_IN_REPORT:
        print("It is too large to be shown within report.html: browsers show it on its own.")


if __name__ == "__main__":
    main()
