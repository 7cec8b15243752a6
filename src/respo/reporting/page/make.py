"""The commands that make what is missing: targets as the rules of the workflow know them."""

import shlex
from pathlib import Path

from respo.reporting.results import Results


def below(results: Results, path: Path) -> str:
    """Return a path below the study's folder."""
    return path.relative_to(results.folder).as_posix()


def command(results: Results) -> dict[str, str]:
    """Return what stands around a target, and where the command must be run.

    Returns:
        `before` and `after` a target below the study's folder; `where`: the folder in which to run
        it, empty for the one in which the page was made, or any with the project.
    """
    folder = results.folder.resolve()
    root, parent = folder.parents[1], folder.parent.as_posix()
    here = root == Path.cwd()
    # Results that lie elsewhere than beside a Snakefile are known to the rules by their whole path.
    if here or (root / "Snakefile").is_file():
        parent = folder.parent.name
    config = "" if parent == "results" else f" results={shlex.quote(parent)}"
    return {
        "before": f"snakemake {shlex.quote(f'{parent}/{folder.name}')}/",
        "after": f" --config study={shlex.quote(results.study.name)}{config}",
        "where": "" if here or parent == folder.parent.as_posix() else root.as_posix(),
    }
