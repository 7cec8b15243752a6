import pytest

from respo.provenance import environments


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("code", "a" * 40, "a" * 12),
        ("code", "a" * 40 + "-dirty", "a" * 12 + " with changes that are not committed"),
        ("code", "not from a git checkout", "not from a git checkout"),
        ("code", "unknown", "unknown"),
        ("torch", "2.13.0+cpu-and-more", "2.13.0+cpu-and-more"),
    ],
)
def test_short(key, value, expected):
    assert environments.short(key, value) == expected


def test_what_a_step_lacks_is_no_difference():
    told = [("a", {"torch": "1", "code": "x"}), ("b", {"code": "y"}), ("c", {"code": "x"})]
    assert environments.differing(told) == {"code": {"x": ["a", "c"], "y": ["b"]}}


def test_earlier_generations_are_told():
    made_from = {"environment": {"torch": "2"}, "earlier": [{"torch": "1"}], "device": "cpu"}
    assert environments.of_generations(made_from) == [
        {"torch": "2", "device": "cpu"},
        {"torch": "1", "device": "cpu"},
    ]
