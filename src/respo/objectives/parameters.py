"""Parameter types of objectives: a number together with the range it is allowed to have."""

import math
from dataclasses import dataclass
from typing import Annotated


@dataclass(frozen=True)
class Range:
    """The finite numbers from `low` (excluded if `above`) up to and including `high`."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False

    def __contains__(self, value: object) -> bool:
        # bool is an int for Python, yet `epsilon_low: true` in a configuration is a mistake.
        if isinstance(value, bool) or not isinstance(value, int | float):
            return False
        try:
            if not math.isfinite(value):
                return False
        except OverflowError:  # an integer beyond the floats
            return False
        return (self.low < value if self.above else self.low <= value) and value <= self.high

    def __str__(self) -> str:
        if self.low == -math.inf:
            return "a finite number"
        if self.high == math.inf:
            return f"a finite number {'>' if self.above else '>='} {self.low:g}"
        return f"a number in {'(' if self.above else '['}{self.low:g}, {self.high:g}]"


# Far beyond anything sensible, and far from where float32 overflows in a formula.
LARGEST = 1e6

Number = Annotated[float, Range(low=-LARGEST, high=LARGEST)]
NonNegative = Annotated[float, Range(low=0, high=LARGEST)]
AboveOne = Annotated[float, Range(low=1, high=LARGEST, above=True)]
UnitInterval = Annotated[float, Range(low=0, high=1)]
Positive = Annotated[float, Range(low=1 / LARGEST, high=LARGEST)]
