"""verl's own checkpoints, the states that training continues from: which there are, which may go.

verl writes `global_step_K` after its step K, and then K into `latest_checkpointed_iteration.txt`,
which names the state that it continues from.
"""

import re
import shutil
from collections.abc import Collection
from pathlib import Path

from respo.files import write_text

TRACKER = "latest_checkpointed_iteration.txt"
STATE = re.compile(r"global_step_(\d+)")
# What verl writes last into a state.
LAST_FILE = "data.pt"


def state(folder: Path, step: int) -> Path:
    """Return the folder of a state."""
    return folder / f"global_step_{step}"


def steps(folder: Path) -> list[int]:
    """Return the steps of which there is a state, whole or not, in order."""
    if not folder.is_dir():
        return []
    found = (STATE.fullmatch(path.name) for path in folder.iterdir())
    return sorted(int(match[1]) for match in found if match)


def latest(folder: Path) -> int:
    """Return the step of the state that verl continues from; 0 if there is none."""
    try:
        return max(0, int((folder / TRACKER).read_text()))
    except (FileNotFoundError, ValueError):  # or it is being written
        return 0


def tidy(folder: Path) -> None:
    """Mend what a killed trainer has left; for times when none is running.

    States that were not finished are deleted. verl empties the tracker before it writes it, and
    does not start with an empty one, nor with one that names a state that is not there.
    """
    tracker = folder / TRACKER
    if tracker.is_file() and latest(folder) not in steps(folder):
        whole = [step for step in steps(folder) if (state(folder, step) / LAST_FILE).is_file()]
        if whole:
            write_text(tracker, str(whole[-1]))
        else:
            tracker.unlink()
    for step in steps(folder):
        if step > latest(folder):
            shutil.rmtree(state(folder, step))


def superfluous(
    there: Collection[int], newest: int, keep_last: int, wanted: Collection[int]
) -> list[int]:
    """Return the steps whose states may be deleted.

    Args:
        there: steps of which there is a state.
        newest: the step that verl continues from; later ones are being written.
        keep_last: so many of the others are kept, `newest` counted.
        wanted: steps that are still to be merged.
    """
    whole = sorted(step for step in there if step <= newest)
    return [step for step in whole[:-keep_last] if step != newest and step not in wanted]


def delete(folder: Path, step: int) -> None:
    """Delete a state; files that somebody has open on a network stay for a while."""
    shutil.rmtree(state(folder, step), ignore_errors=True)
