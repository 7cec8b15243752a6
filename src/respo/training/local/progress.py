"""Progress lines on standard error."""

import sys
import time

INTERVAL_SECONDS = 5.0


class Progress:
    """Tells every few seconds how far the work is and how long it will still take."""

    def __init__(self, name: str, unit: str, done: int, total: int) -> None:
        self._name, self._unit, self._total = name, unit, total
        self._first = done
        self._start = self._told = time.monotonic()

    def tell(self, done: int, text: str) -> None:
        """Print a line if the last one is some seconds old, or if this is the end."""
        now = time.monotonic()
        if done < self._total and now - self._told < INTERVAL_SECONDS:
            return
        self._told = now
        each = (now - self._start) / max(1, done - self._first)
        print(
            f"{self._name}  {self._unit} {done}/{self._total}  {text}  "
            f"{each:.3f} s/{self._unit}  {each * (self._total - done):.0f} s left",
            file=sys.stderr,
            flush=True,
        )
