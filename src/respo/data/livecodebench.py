"""LiveCodeBench's form of a problem: code_generation_lite (Jain et al., 2025).

All tests count, the public ones first. `testtype` is `stdin` or `functional`; the name of the
function is `func_name` of the metadata, and the starter code holds its head.
"""

from datetime import UTC, datetime
from typing import Any

from respo.data import fields
from respo.data.packed import unpack
from respo.data.problem import Case, Problem, checked, parsed

COLUMNS = (
    "question_id",
    "question_content",
    "contest_date",
    "starter_code",
    "public_test_cases",
    "private_test_cases",
    "metadata",
)
OPTIONAL: tuple[str, ...] = ()


def date(values: dict[str, Any]) -> datetime:
    """Return when the contest was, in UTC if the row names a zone, else as it stands there.

    Raises:
        ValueError: the row does not say it.
    """
    text = fields.field(values, "contest_date")
    try:
        day = text if isinstance(text, datetime) else datetime.fromisoformat(text)
        return day.astimezone(UTC).replace(tzinfo=None) if day.tzinfo else day
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"contest_date is {text!r}, not a date") from None


def problem(values: dict[str, Any]) -> Problem:
    """Read a problem.

    Raises:
        NoAnswer: it has no usable tests.
        ValueError: a field is missing or broken.
    """
    private = fields.field(values, "private_test_cases")
    if isinstance(private, str) and not private.lstrip().startswith("["):
        try:
            private = unpack(private)
        except ValueError as error:
            raise ValueError(f"private_test_cases: {error}") from None
    cases = [
        case
        for what, value in (
            ("public_test_cases", fields.field(values, "public_test_cases")),
            ("private_test_cases", private),
        )
        for case in _cases(parsed(value, what), what)
    ]
    kinds = {str(case.get("testtype")) for case in cases}
    if kinds - {"stdin", "functional"} or len(kinds) > 1:
        raise ValueError(f"testtype is {sorted(kinds)}, not stdin or functional for all")
    function = None
    if kinds == {"functional"}:
        metadata = parsed(fields.field(values, "metadata"), "metadata")
        function = metadata.get("func_name") if isinstance(metadata, dict) else None
        if not isinstance(function, str):
            raise ValueError("the metadata name no function (func_name)")
    tests = [Case(fields.field(case, "input"), fields.field(case, "output")) for case in cases]
    starter_code = fields.field(values, "starter_code")
    return Problem(
        name=fields.name(fields.field(values, "question_id")),
        prompt=fields.question(fields.field(values, "question_content")),
        starter_code=starter_code.strip("\n") if isinstance(starter_code, str) else "",
        function=function,
        tests=checked(function, tests),
    )


def _cases(value: Any, what: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(case, dict) for case in value):
        raise ValueError(f"{what} are not a list of objects")
    return value
