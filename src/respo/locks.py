"""Start again after snakemake was killed, without a hand on its locks.

Snakemake locks its folder with files, which outlive a killed process and then forbid every new
start. This guard is a kernel lock, which ends with its process: every snakemake of the folder
shares it as long as it lives, and who can have it alone knows that lock files still there are
stale.
"""

import fcntl
from pathlib import Path
from typing import IO, NamedTuple


class Guard(NamedTuple):
    """The guard of this process, to be kept as long as it lives.

    ``alone``: no other snakemake of the folder was alive when it was taken.
    """

    file: IO[str]
    alone: bool


def clear_stale_locks(snakemake_folder: Path) -> Guard:
    """Remove lock files that a killed snakemake left in its `.snakemake` folder.

    If another snakemake is alive its lock files are left alone, and snakemake itself refuses to
    start.

    Raises:
        OSError: the folder cannot be written.
    """
    snakemake_folder.mkdir(exist_ok=True)
    file = (snakemake_folder / "alive").open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        alone = False
    else:
        alone = True
        for lock in (snakemake_folder / "locks").glob("*.lock"):
            lock.unlink()
    fcntl.flock(file, fcntl.LOCK_SH)
    return Guard(file, alone)
