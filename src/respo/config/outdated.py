"""Results of another configuration are never taken for this one.

Snakemake remembers in its own folder what each file was made from. Results that were copied here,
or whose memory was lost, have only the configuration that lies beside them. Where that is not
today's it is written anew: it is then newer than the results, and all that depends on it is remade.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from respo.files import write_text


def renew_outdated(texts: Mapping[str, Callable[[], str]]) -> list[str]:
    """Renew the configuration files of a results folder that do not hold today's text.

    Args:
        texts: for each file the function that returns its canonical text; called only for files
            that exist, and none is created.

    Returns:
        The renewed files.
    """
    renewed = []
    for name, make_text in texts.items():
        path = Path(name)
        if path.is_file() and path.read_bytes() != (text := make_text()).encode():
            write_text(path, text)
            renewed.append(name)
    return renewed
