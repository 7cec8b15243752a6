"""The starts of a run: when, after which update, on what machine, with which versions.

`train.json` lists them, so that a run that was continued under other versions or on another machine
says so. Times and durations stand there and nowhere else: they differ between two trainings that
are the same in all else.
"""

from datetime import UTC, datetime
from typing import Any

from respo.environment import environment

# Keys: update, at, device, versions.
Start = dict[str, Any]


def this_start(update: int, device: str, *packages: str) -> Start:
    """Describe a start that goes on after an update, 0 at the beginning.

    Args:
        update: policy updates done.
        device: where training runs.
        packages: whose versions are told.
    """
    return {"update": update, "at": now(), "device": device, "versions": environment(*packages)}


def now() -> str:
    """Return the time, in UTC and to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
