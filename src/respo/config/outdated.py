"""Results of another configuration are never taken for this one.

Snakemake remembers in its own folder what each file was made from. Results that were copied here,
or whose memory was lost, have only the configuration that lies beside them: where it is not today's
it is removed, and snakemake makes it, and all that depends on it, anew.
"""

from collections.abc import Callable, Mapping
from pathlib import Path


def remove_outdated(texts: Mapping[str, Callable[[], str]]) -> list[str]:
    """Remove the configuration files of a results folder that do not hold today's text.

    Args:
        texts: for each file the function that returns its canonical text; called only for files
            that exist.

    Returns:
        The removed files.
    """
    removed = []
    for name, text in texts.items():
        path = Path(name)
        if path.is_file() and path.read_bytes() != text().encode():
            path.unlink()
            removed.append(name)
    return removed
