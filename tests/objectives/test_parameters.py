"""What a parameter may be."""

import pytest

from respo.objectives.parameters import Range


@pytest.mark.parametrize(
    ("allowed", "inside", "outside", "text"),
    [
        (Range(), [-1e9, 0, 3.5], [], "a finite number"),
        (Range(low=0), [0, 0.0, 1e9], [-1e-9], "a finite number >= 0"),
        (Range(low=1, above=True), [1.0001, 3], [1, 1.0, 0.5], "a finite number > 1"),
        (Range(low=0, high=1), [0, 1, 0.5], [-0.1, 1.1], r"a number in [0, 1]"),
        (Range(low=0, high=1, above=True), [1, 0.5], [0], r"a number in (0, 1]"),
    ],
)
def test_range(allowed, inside, outside, text):
    assert str(allowed) == text
    assert all(value in allowed for value in inside)
    never = [float("nan"), float("inf"), float("-inf"), True, False, "0.5", None, [0.5]]
    assert not any(value in allowed for value in [*outside, *never])
