"""Differences between the methods of a model and N: are they resolved, and what would resolve them?

Every pair is compared: with 22 methods these are 231. The CSV file has them all; a page shows each
method against the best one and against the reference, the study's GRPO or else its first method.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from respo.reporting import labels, selection
from respo.reporting.layout import PARTIAL, Cell, Column, Number, Section, text
from respo.reporting.results import Results
from respo.reporting.rows import MACRO, Row, blocks
from respo.reporting.text import number
from respo.statistics import difference_variance, needed, paired_contrast, smallest_number

TEXT = (
    "In percentage points, with 95 % percentile intervals from the same replicates (paired by "
    "problem; not corrected for the number of comparisons)."
)
VERDICTS = (
    "Resolved: (1) the interval excludes zero, so other problems would hardly change the sign; and "
    "(2), at two or more training seeds, the square of the difference exceeds (1.96 × error of the "
    "problems)² + (t × error of the seeds)², where Student's t stands for how little a few seeds "
    "tell of their spread: 12.7 with two, 4.3 with three, 2.8 with five. Up to four seeds must "
    "have the same sign for that. Of all differences that are none this calls about 5 % resolved, "
    "or fewer (simulated). The price: where the seeds' error dominates, two seeds resolve next to "
    "nothing, and three a true difference of 3.3 times its standard deviation over seeds (in four "
    "of five repetitions; five seeds: 1.7 times). More seeds, or seeds disagree: (2) fails, and "
    "more seeds must decide; the differences by seed have the same sign, or not the same sign (0 "
    "is of neither). One seed: (2) cannot be told. Not resolved: (1) fails, or no number of seeds "
    "is enough for (2)."
)
NEEDED = (
    "The last columns say what would resolve a difference of the size seen at the seeds that both "
    "have (in about half of the repetitions): that many times as many problems, or samples of "
    "each, or seeds, all else as it is, rounded up, and in brackets how many these are (of "
    "problems: in all benchmarks together); enough: no more than there are; never: the variance "
    "that they leave is too large by itself. With one seed the spread over seeds is not known, and "
    "the first two are for these two checkpoints alone. They count standard errors, the interval "
    "percentiles: at the edge one may exclude zero where the other does not."
)
PARTIAL_NOTE = f"{PARTIAL}: the two are not of all their seeds."


class Contrast(NamedTuple):
    """Macro average of `second` minus that of `first`, with its 95 % percentile interval.

    by_seed: the difference of each seed that both have, in order of the seeds. problems, samples,
    seeds: how many times as many would resolve it (`respo.statistics.needed`).
    """

    first: Row
    second: Row
    difference: float
    low: float
    high: float
    excludes_zero: bool
    by_seed: tuple[float, ...]
    problems: float
    samples: float
    seeds: float

    @property
    def verdict(self) -> str:
        """`resolved` if neither other problems nor other seeds would change the sign.

        With too few problems for any number of seeds it is not, whatever the interval says.
        """
        if not self.excludes_zero or math.isinf(self.seeds):
            return "not resolved"
        if len(self.by_seed) < 2:
            return "one seed"
        if self.seeds <= 1:
            return "resolved"
        disagree = any(difference * self.difference <= 0 for difference in self.by_seed)
        return "seeds disagree" if disagree else "more seeds"


def contrasts(rows: Sequence[Row]) -> Iterator[Contrast]:
    """Compare each pair of methods of a block that both have a macro average."""
    for _, block in blocks(rows):
        for index, second in enumerate(block):
            for first in block[:index]:
                if first.bootstrap is not None and second.bootstrap is not None:
                    yield compare(first, second)


def compare(first: Row, second: Row) -> Contrast:
    """Compare two rows of the same problems, which both have a macro average."""
    assert first.bootstrap is not None
    assert second.bootstrap is not None
    paired = paired_contrast(second.bootstrap, first.bootstrap)
    seeds = [seed for seed in second.macro_by_seed if seed in first.macro_by_seed]
    by_seed = tuple(second.macro_by_seed[seed] - first.macro_by_seed[seed] for seed in seeds)
    return Contrast(
        first,
        second,
        paired.macro_difference,
        paired.macro_low,
        paired.macro_high,
        paired.macro_resolved,
        by_seed,
        *_needed(first, second, seeds, by_seed),
    )


def _needed(
    first: Row, second: Row, seeds: list[int], by_seed: Sequence[float]
) -> tuple[float, float, float]:
    """Return how many times as many problems, samples or seeds it takes; NaN: not known."""
    benchmarks = [name for name in first.estimates if name != MACRO]
    if not seeds or any(first.problems(b) < 2 for b in benchmarks):
        return math.nan, math.nan, math.nan
    variance = difference_variance(
        *([row.counts(b, seeds) for b in benchmarks] for row in (second, first))
    )
    return needed(float(np.mean(by_seed)), variance)


def section(results: Results, rows: Sequence[Row]) -> Section:
    """Lay out the comparison of all pairs, of which a page shows some."""
    found = list(contrasts(rows))
    lines = [_line(results, contrast) for contrast in found]
    shown = [line for c, line in zip(found, lines, strict=True) if _is_shown(results, c, rows)]
    return Section(
        "contrasts",
        "Differences of the macro average",
        _text(found, shown),
        COLUMNS,
        lines,
        shown,
        _notes(found),
    )


COLUMNS = [
    text("model", None),
    text("N", None),
    text("first", None),
    text("second", None),
    text(None, "Model"),
    text(None, "N"),
    text(None, "Difference"),
    Column("second_minus_first", "Points", scale=100.0, sign=True),
    Column("low", None),
    Column("high", None),
    text(None, "95 % interval"),
    text(None, "By seed"),
    text("verdict", "Verdict"),
    Column("problems_factor", None),
    Column("samples_factor", None),
    Column("seeds_factor", None),
    Column("problems_needed", None, digits=0),
    Column("samples_needed", None, digits=0),
    Column("seeds_needed", None, digits=0),
    text(None, "Problems ×"),
    text(None, "Samples ×"),
    text(None, "Seeds ×"),
]


def _line(results: Results, contrast: Contrast) -> list[Cell]:
    first, second = contrast.first, contrast.second
    low, high = (_points(end) for end in (contrast.low, contrast.high))
    partial = first.is_partial(MACRO) or second.is_partial(MACRO)
    factors = (contrast.problems, contrast.samples, contrast.seeds)
    problems, samples, seeds = _now(contrast)
    numbers = [
        _needed_number(problems, contrast.problems),
        _needed_number(samples, contrast.samples),
        None if not 1 < contrast.seeds < math.inf else round(seeds * contrast.seeds),
    ]
    return [
        first.model,
        str(first.staleness),
        first.method,
        second.method,
        results.study.models[first.model].label,
        str(first.staleness),
        f"{labels.method(results.study, second)} − {labels.method(results.study, first)}",
        Number(contrast.difference, digits=_digits(contrast.difference), partial=partial),
        Number(contrast.low),
        Number(contrast.high),
        f"[{low}, {high}]",
        ", ".join(_points(difference) for difference in contrast.by_seed),
        contrast.verdict,
        *map(Number, factors),
        *(None if count is None else Number(count) for count in numbers),
        *map(factor, factors, numbers),
    ]


def _now(contrast: Contrast) -> tuple[int | None, int | None, int]:
    """Return how many problems, samples of each and seeds there are; None where K differs."""
    row = contrast.first
    benchmarks = [name for name in row.estimates if name != MACRO]
    samples = {cell.problems[0].samples for cell in row.cells.values()}
    return (
        sum(row.problems(name) for name in benchmarks),
        samples.pop() if len(samples) == 1 else None,
        len(contrast.by_seed),
    )


def _needed_number(now: int | None, factor: float) -> int | None:
    """Return how many it takes; None where that is not known, or where there are enough."""
    return None if now is None or factor <= 1 else smallest_number(now, factor)


def _points(share: float) -> str:
    return number(100 * share, digits=_digits(share), sign=True)


def _digits(share: float) -> int:
    """Return the digits after the point: as many, up to three, as show the side of zero."""
    return next((d for d in (1, 2, 3) if round(abs(100 * share), d) > 0), 1)


def factor(value: float, count: int | None = None) -> str:
    """Print how many times as many are needed, rounded up; nothing where it is not known.

    count: how many these are.
    """
    if math.isnan(value):
        return ""
    if math.isinf(value):
        return "never"
    # 1.1 times 10 is a bit more than 11: what is that near is not rounded up.
    if value <= 1:
        return "enough"
    times = number(math.ceil(10 * value - 1e-9) / 10, digits=1)
    return times if count is None else f"{times} ({count:,})"


def _is_shown(results: Results, contrast: Contrast, rows: Sequence[Row]) -> bool:
    """Whether one of the two is the best of its block or the study's reference."""
    reference = selection.reference(results.study)
    pair = (contrast.first, contrast.second)
    key = (contrast.first.model, contrast.first.staleness)
    block = [r for r in rows if (r.model, r.staleness) == key and MACRO in r.estimates]
    complete = [r for r in block if not r.is_partial(MACRO)]
    best = max(r.estimates[MACRO].value for r in complete or block)
    return any(row.method == reference or row.estimates[MACRO].value == best for row in pair)


def _text(found: Sequence[Contrast], shown: Sequence[object]) -> str:
    if len(found) == len(shown):
        return TEXT
    return (
        f"{TEXT} Here are {len(shown)} of {len(found)} pairs, those with the best method or the "
        "reference; the CSV file of contrasts has all of them."
    )


def _notes(found: Sequence[Contrast]) -> list[str]:
    partial = any(row.is_partial(MACRO) for contrast in found for row in contrast[:2])
    return [VERDICTS, NEEDED, *([PARTIAL_NOTE] if partial else [])]
