"""The table of refused calls, and what the docs say of it."""

from pathlib import Path

from respo.rewards.code.inside.seccomp import _ARGUMENTS, _CALLS

DOCS = Path(__file__).parents[3] / "docs" / "sandbox.md"


def test_the_docs_count_them() -> None:
    assert f"{len(_CALLS)} that no such program needs are refused" in DOCS.read_text()


def test_no_number_stands_twice() -> None:
    for column in range(2):
        numbers = [call[column] for call in _CALLS.values() if call[column] is not None]
        assert len(set(numbers)) == len(numbers)
        assert not set(numbers) & {call[column] for call, *_ in _ARGUMENTS}
