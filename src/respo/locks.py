"""Start again after snakemake was killed, without a hand on its locks.

Snakemake locks its folder with files, which outlive a killed process and then forbid every new
start. This guard is a kernel lock, which ends with its process: who can take it knows that no other
snakemake of this folder is alive, so lock files that are still there are stale.
"""

import fcntl
from pathlib import Path
from typing import IO


def clear_stale_locks(snakemake_folder: Path) -> IO[str] | None:
    """Remove lock files that a killed snakemake left in its `.snakemake` folder.

    Returns:
        The guard, to be kept open as long as the process lives; None if another snakemake is alive
        (its lock files are left alone, and snakemake itself refuses to start) or if the folder
        cannot be written (snakemake will say so).
    """
    try:
        snakemake_folder.mkdir(exist_ok=True)
        guard = (snakemake_folder / "alive").open("w")
    except OSError:
        return None
    try:
        fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        guard.close()
        return None
    for lock in (snakemake_folder / "locks").glob("*.lock"):
        lock.unlink()
    return guard
