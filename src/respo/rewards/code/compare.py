"""Whether an output is the expected one, as LiveCodeBench compares them. Runs outside the sandbox.

An output comes from a program that may mean harm, so that comparing it must stay cheap: one that is
far longer than what is expected is wrong without a look. That rule is not LiveCodeBench's.
"""

import json
import sys
from decimal import Decimal, InvalidOperation

# An output has at most this many characters, and this many more for each expected one.
_CHARACTERS, _TIMES = 1000, 20
# Python refuses to make integers of more digits than a limit, which is at least this.
_DIGITS = sys.int_info.str_digits_check_threshold


def same_output(expected: str, output: str) -> bool:
    """Compare the standard output of a program.

    Both texts are stripped and have the same number of lines; two lines are equal if they are so
    when stripped, or if both consist of numbers only, which are equal as decimals: 1.0 is 1.00,
    while 0.3333 is not 0.33333.
    """
    expected, output = expected.strip(), output.strip()
    if _far_longer(expected, output) or expected.count("\n") != output.count("\n"):
        return False
    pairs = zip(expected.split("\n"), output.split("\n"), strict=True)
    return all(_same_line(want.strip(), line.strip()) for want, line in pairs)


def same_value(expected: str, output: str) -> bool:
    """Compare the value that a function returned, both as JSON.

    The values are equal as in Python (1 is 1.0). A tuple counts as a list, also within a value,
    where LiveCodeBench converts the outermost only.
    """
    if _far_longer(expected, output):
        return False
    try:
        want = json.loads(expected, parse_int=_integer)
        return bool(json.loads(output, parse_int=_integer) == want)
    except (ValueError, RecursionError):
        return False


def _integer(text: str) -> int | Decimal:
    return int(text) if len(text) <= _DIGITS else Decimal(text)


def _far_longer(expected: str, output: str) -> bool:
    return len(output) > _CHARACTERS + _TIMES * len(expected)


def _same_line(want: str, line: str) -> bool:
    if want == line:
        return True
    try:
        return [Decimal(word) for word in want.split()] == [Decimal(word) for word in line.split()]
    except InvalidOperation:  # not a number, or one that no other is comparable with
        return False
