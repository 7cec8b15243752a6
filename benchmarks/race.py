"""Interleaved measuring, and the rows that `python -m benchmarks` makes a table of."""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple


class Taken(NamedTuple):
    """What one call took, in seconds, and how much it did: tokens, responses, or 1 call."""

    cpu: float
    wall: float
    work: float = 1.0


@dataclass(frozen=True)
class Row:
    """A figure of ours in each round and, where there is a peer, the peer's in the same rounds.

    Figures are in `unit`. With a unit per second more is better, else less is.
    """

    name: str
    unit: str
    ours: Sequence[float]
    peer: str = ""
    theirs: Sequence[float] = ()
    wall_ours: Sequence[float] = ()
    wall_theirs: Sequence[float] = ()

    @property
    def ratios(self) -> list[float]:
        """How many times as fast or small as the peer ours is, by round: above 1 ours is ahead."""
        return self._ratios(self.ours, self.theirs)

    @property
    def wall_ratios(self) -> list[float]:
        """The same by wall clock."""
        return self._ratios(self.wall_ours, self.wall_theirs)

    def _ratios(self, ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
        pairs = zip(ours, theirs, strict=True) if theirs else ()
        return [a / b if self.unit.endswith("/s") else b / a for a, b in pairs]


def timed(run: Callable[[], object]) -> Taken:
    """Call `run`; a number that it returns is its work."""
    cpu, wall = time.process_time(), time.perf_counter()
    work = run()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    return Taken(cpu, wall, work if isinstance(work, int | float) else 1.0)


def race(
    contestants: dict[str, Callable[[], Taken]], rounds: int, warm_up: bool = True
) -> dict[str, list[Taken]]:
    """Run all in turns, A B A B, so that other work on the machine disturbs each alike."""
    taken: dict[str, list[Taken]] = {name: [] for name in contestants}
    for number in range(-warm_up, rounds):
        for name, run in contestants.items():
            found = run()
            if number >= 0:
                taken[name].append(found)
    return taken


def compare(
    name: str, unit: str, ours: list[Taken], peer: str = "", theirs: Sequence[Taken] = ()
) -> Row:
    """Make a row of what a race gave."""
    return Row(
        name,
        unit,
        [_figure(each.cpu, each.work, unit) for each in ours],
        peer,
        [_figure(each.cpu, each.work, unit) for each in theirs],
        [_figure(each.wall, each.work, unit) for each in ours],
        [_figure(each.wall, each.work, unit) for each in theirs],
    )


def _figure(seconds: float, work: float, unit: str) -> float:
    if unit.endswith("/s"):
        return work / seconds
    return seconds / work * {"s": 1.0, "ms": 1e3, "us": 1e6}[unit]


HEAD = ("what", "unit", "ours", "peer", "its", "ratio (least to most)", "by wall clock")


def table(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the lines of a table in Markdown; figures are medians over the rounds."""
    yield "| " + " | ".join(HEAD) + " |"
    yield "|---|---|--:|---|--:|--:|--:|"
    for row in rows:
        ratios, wall = row.ratios, row.wall_ratios
        cells = [
            row.name,
            row.unit,
            _number(statistics.median(row.ours)),
            row.peer or "-",
            _number(statistics.median(row.theirs)) if row.theirs else "-",
            _ratio(ratios) if ratios else "-",
            f"{statistics.median(wall):.2f}" if wall else "-",
        ]
        yield "| " + " | ".join(cells) + " |"


def _ratio(ratios: list[float]) -> str:
    low, high = min(ratios), max(ratios)
    rounds = f"{low:.2f} to {high:.2f}" if len(ratios) > 1 else "one round"
    return f"**{statistics.median(ratios):.2f}** ({rounds})"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def main(rows: Callable[[bool], Iterable[Row]], summary: str) -> None:
    """The command line of one benchmark: `python -m benchmarks.NAME`."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{Path(sys.argv[0]).stem}",
        description=summary.split("\n\n")[0],
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    options = parser.parse_args()
    try:
        found = list(rows(options.quick))
    except ModuleNotFoundError as error:
        sys.exit(f"error: {error.name} is not installed; `./run bench` installs what is compared")
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in found]))
    print("\n".join(table(found)))
