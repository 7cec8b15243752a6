"""`python -m respo.reporting.figure ID --study results/STUDY`: draw a figure.

Writes `figures/ID.pdf` and `.png` in the study's folder, from what lies there. The same results
give the same bytes.
"""

import argparse
from pathlib import Path

from respo.cli import command
from respo.reporting import figures, registry
from respo.reporting.results import Results


@command
def main() -> None:
    """Parse the command line and write the figure in both formats."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("id", choices=registry.ids(figures), help="the figure")
    parser.add_argument("--study", type=Path, required=True, help="folder results/STUDY")
    options = parser.parse_args()
    results = Results(options.study)
    # Imported here: --help and a wrong folder should not wait for matplotlib.
    from respo.reporting import style

    with style.applied():
        figure = registry.module(figures, options.id).draw(results)
        for path in style.save(figure, results.folder / "figures" / options.id, results.digest()):
            print(path)


if __name__ == "__main__":
    main()
