"""What the logs of jobs say: how far the work is, and why it ended."""

import re
from pathlib import Path
from typing import NamedTuple

TAIL_BYTES = 1 << 15
# Lines of a local trainer, of a generation and of a scoring.
TOLD = (
    re.compile(r"  (?:update|step) (\d+)/(\d+)  .*  (\d+) s left"),
    re.compile(r"^(\d+)/(\d+) responses(?: are there already\b.*|  .*  (\d+) s left|)$"),
    re.compile(r"^scored (\d+) of (\d+), about (\d+) s left$"),
)
# Of a message in several lines, the others are indented.
ERROR = re.compile(r"(?:\S.*: )?error: .*")
# What a trainer or a generation that was asked to stop ends with.
STOPPED = re.compile(r".*: stopped\b.*|interrupted; .*")
TRACEBACK = "Traceback (most recent call last):"
# Lines that may follow the exception's own at the end of a log, such as further lines of its text.
FURTHER_LINES = 10


class Told(NamedTuple):
    """The newest line of progress."""

    done: int
    total: int
    seconds_left: float | None


def lines(log: Path, size: int = TAIL_BYTES) -> list[str]:
    """Return the last lines that are not empty, without control characters; none without a log."""
    try:
        with log.open("rb") as file:
            length = file.seek(0, 2)
            file.seek(max(0, length - size))
            text = file.read().decode(errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return []
    # The first line is cut where the file is longer.
    found = text.splitlines()[1 if length > size else 0 :]
    printable = ("".join(filter(str.isprintable, line)).rstrip() for line in found)
    return [line for line in printable if line]


def told(tail: list[str]) -> Told | None:
    """Return how far the work is by its own last word, None if it has said nothing yet."""
    for line in reversed(tail):
        for told in TOLD:
            if found := told.search(line):
                done, total, left = found.groups()
                return Told(int(done), int(total), None if left is None else float(left))
    return None


def is_stopped(tail: list[str]) -> bool:
    """Tell whether a log ends with the word of a job that was asked to stop."""
    own = [line for line in tail if not line.startswith(" ")]
    return bool(own) and STOPPED.fullmatch(own[-1]) is not None


def failure(tail: list[str]) -> str | None:
    """Return the message that a log ends with, None if it ends with something else.

    It is an error that the project explains, or the exception after the last traceback.
    """
    own = [place for place, line in enumerate(tail) if not line.startswith(" ")]
    if not own or STOPPED.fullmatch(tail[own[-1]]):
        return None
    if ERROR.fullmatch(tail[own[-1]]):
        return " ".join(line.strip() for line in tail[own[-1] :])
    if TRACEBACK not in tail:
        return None
    begin = len(tail) - tail[::-1].index(TRACEBACK)
    after = [tail[place] for place in own if place >= begin]
    return after[0] if 0 < len(after) <= 1 + FURTHER_LINES else None
