"""The commands that make what is missing: targets as the rules of the workflow know them."""

from pathlib import Path

from respo.provenance import targets
from respo.reporting.results import Results


def below(results: Results, path: Path) -> str:
    """Return a path below the study's folder."""
    return path.relative_to(results.folder).as_posix()


def command(results: Results) -> dict[str, str]:
    """Return what stands around a target, and where it must be run: see `targets.Command`."""
    return targets.command(results.folder, results.study.name)._asdict()
