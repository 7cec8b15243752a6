"""Signals that ask the trainer to stop, obeyed between two updates."""

import signal
import sys
from types import FrameType


class Interrupt:
    """Remembers SIGTERM and SIGINT from its creation on; `number` is the one that has come."""

    def __init__(self) -> None:
        self.number: int | None = None
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._remember)

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.number = number

    @property
    def asked(self) -> bool:
        """A signal has come."""
        return self.number is not None

    def stop(self, message: str) -> None:
        """Exit as shells expect after a signal, 128 + its number, if one has come."""
        if self.number is not None:
            print(message, file=sys.stderr)
            sys.exit(128 + self.number)
