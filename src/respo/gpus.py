"""`python -m respo.gpus N -- COMMAND...`: run a command on N of this machine's GPUs that are free.

Snakemake counts the GPUs of jobs that run at a time, but does not say which a job gets. This takes
those that no other job holds, or waits until enough are free, and names them to the command in
CUDA_VISIBLE_DEVICES. GPUs are held by kernel locks, which end with the command however it ends; so
a job that outlived its snakemake keeps its own.

Where that variable is set, GPUs are taken from those it names. Without GPUs, and in a Slurm job
that has GPUs on several nodes, the command runs as it is.
"""

import argparse
import fcntl
import os
import stat
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from respo.cli import UserError, command

POLL_SECONDS = 1.0
VISIBLE = "CUDA_VISIBLE_DEVICES"


@command
def main() -> None:
    """Parse the command line, take the GPUs and become the command."""
    parser = argparse.ArgumentParser(
        prog="python -m respo.gpus",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("number", type=int, choices=range(1025), metavar="N", help="how many GPUs")
    parser.add_argument("command", nargs="+", help="what runs, after --")
    options = parser.parse_args()
    job = os.environ.get("SLURM_JOB_ID")
    there = visible_gpus()
    if options.number and there and not (job and options.number > len(there)):
        # Of two jobs of Slurm on a node, both may call their GPUs 0 and 1.
        folder = Path(tempfile.gettempdir()) / f"respo-gpus-{os.getuid()}-{job or 'all'}"
        os.environ[VISIBLE] = ",".join(take(options.number, there, folder))
    try:
        os.execvp(options.command[0], options.command)  # noqa: S606 - no shell
    except OSError as error:
        raise UserError(f"cannot start {options.command[0]}: {error.strerror}") from None


def visible_gpus() -> list[str]:
    """Return the names of the GPUs that this process may use."""
    if VISIBLE in os.environ:
        names = (name.strip() for name in os.environ[VISIBLE].split(","))
        return list(dict.fromkeys(name for name in names if name))
    try:
        told = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    # Parts of a GPU stand below it, indented.
    whole = [line for line in told.stdout.splitlines() if line.startswith(b"GPU ")]
    return [str(number) for number in range(len(whole))]


def take(number: int, there: list[str], folder: Path) -> list[str]:
    """Return the names of GPUs that this process, and what it becomes, holds from now on.

    Args:
        number: how many.
        there: the names to choose from.
        folder: of the lock files; the same for all who share the GPUs.

    Raises:
        UserError: there are not so many, or the folder is another user's.
    """
    if number > len(there):
        raise UserError(f"{number} GPUs are needed, and there are {len(there)}: {','.join(there)}")
    _make_own(folder)
    told = False
    while True:
        with ExitStack() as files:
            # One at a time, or two could each wait for what the other has.
            fcntl.flock(files.enter_context((folder / "turn").open("w")), fcntl.LOCK_EX)
            held = []
            for name in there:
                file = files.enter_context((folder / f"gpu-{name.replace('/', '_')}").open("w"))
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                held.append((name, file))
                if len(held) == number:
                    for _, file in held:
                        # A copy of the descriptor shares the lock, and stays open.
                        os.set_inheritable(os.dup(file.fileno()), True)
                    return [name for name, _ in held]
        if not told:
            told = True
            print(f"waiting until {number} of the GPUs {','.join(there)} are free", file=sys.stderr)
        time.sleep(POLL_SECONDS)


def _make_own(folder: Path) -> None:
    """Make a folder of a known name where all users can; nobody else may have made it before.

    What stood there as a link would be opened, and emptied, wherever it leads.
    """
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise UserError(f"{folder}: is not a folder of yours alone; remove it, or set TMPDIR")


if __name__ == "__main__":
    main()
