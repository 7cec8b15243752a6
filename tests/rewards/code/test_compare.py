import time

import pytest

from respo.rewards.code.compare import same_output, same_value

LIVECODEBENCH = "testing_util.py of LiveCodeBench, read"


@pytest.mark.parametrize(
    ("expected", "output", "same"),
    [
        ("1", "1\n", True),
        ("1 2\n3\n", "\n  1 2  \n  3\n\n", True),
        ("YES", "yes", False),
        ("a b", "a  b", False),
        ("1 2", "1  2", True),  # all numbers: compared one by one
        ("1\n2", "1 2", False),
        ("1\n\n2", "1\n2", False),
        ("1.0", "1", True),
        ("0.5", "5e-1", True),
        ("0.33333", "0.333333", False),  # no tolerance
        ("50000000000000000", "50000000000000001", False),
        ("1 2 3", "1 2", False),
        ("1 x", "1.0 x", False),
        ("nan", "NaN", False),
        ("1", "sNaN", False),
        ("-0", "0", True),
        ("", "", True),
        ("", "\n", True),
        ("", "0", False),
        ("1", "1" + " " * 5000, True),
    ],
)
def test_lines(expected: str, output: str, same: bool) -> None:
    assert same_output(expected, output) is same, LIVECODEBENCH


@pytest.mark.parametrize(
    ("expected", "output", "same"),
    [
        ("[1, 2]", "[1,2]", True),
        ("[1, 2]", "[2, 1]", False),
        ("1", "1.0", True),
        ("true", "true", True),
        ("true", "1", True),  # equal in Python
        ("0.1", "0.10000000000000001", True),
        ("0.3", "0.30000000000000004", False),  # no tolerance
        ("null", "null", True),
        ('"a"', '"a"', True),
        ('{"a": [1]}', '{"a": [1]}', True),
        ("1", "", False),
        ("1", "1 1", False),
        ("1", "Infinity", False),
        ("1", "[" * 900, False),
        # Python makes no integer of so many digits.
        ("1" + "0" * 5000, "1" + "0" * 5000, True),
        ("1" + "0" * 5000, "1" + "0" * 4999 + "1", False),
        ("[1" + "0" * 700 + "]", "[1" + "0" * 700 + "]", True),
        ("1" + "0" * 5000, "1", False),
        ("1", "1" + "0" * 900, False),
    ],
)
def test_values(expected: str, output: str, same: bool) -> None:
    assert same_value(expected, output) is same, LIVECODEBENCH


@pytest.mark.parametrize("output", ["1 " * 5_000_000, "1\n" * 5_000_000, "[" * 10_000_000])
def test_a_flood_costs_nothing(output: str) -> None:
    start = time.monotonic()
    assert not same_output("1 2\n3", output)
    assert not same_value("[1]", output)
    assert time.monotonic() - start < 1


def test_a_deep_value_is_just_wrong() -> None:
    depth = 100_000
    expected = "[" + ", ".join(["1"] * depth) + "]"
    assert not same_value(expected, "[" * depth + "]" * depth)
    assert not same_value("[" * depth + "]" * depth, "[" * depth + "]" * depth)
