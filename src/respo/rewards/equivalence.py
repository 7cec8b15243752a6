r"""Mathematical equivalence by Math-Verify: the evaluation rule of the ReSPO study (Appendix D.2).

Import this module in a worker process only (see `respo.rewards.workers`): a short answer such as
``9^{9^9}`` keeps sympy busy for hours. Math-Verify's own time-outs are switched off: they work by
signals, which raise outside a main thread and do not interrupt arithmetic on long integers.

Verdicts are those of Math-Verify's ``parse`` and ``verify`` called for each response; but what they
would do again is remembered. ``parse`` first finds, by regular expressions, places where an answer
may stand, and then reads them as mathematics, the likeliest first, until one has a reading. Its
result is a function of what stands in the places that it tried, so responses that reason
differently and end alike cost their search only. Memory is bounded: only short texts are
remembered, a limited number of them.
"""

from collections.abc import Hashable, Iterable
from re import Match, Pattern
from typing import Any, Generic, NamedTuple, TypeVar

from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, parser, verify
from math_verify.parser import extract_match, get_extraction_regexes

from respo.rewards import sympy_names

_LATEX = [LatexExtractionConfig()]
_EXPRESSION_AND_LATEX = [ExprExtractionConfig(), LatexExtractionConfig()]

REMEMBERED = 2048  # entries of each memory
MAX_CHARACTERS = 1000  # an entry about longer texts is not remembered

Value = TypeVar("Value")


class _Memory(Generic[Value]):
    """The values of the last keys that were asked for."""

    def __init__(self) -> None:
        self._values: dict[Hashable, Value] = {}

    def get(self, key: Hashable) -> Value | None:
        value = self._values.pop(key, None)
        if value is not None:
            self._values[key] = value  # now the youngest
        return value

    def put(self, key: Hashable, value: Value, characters: int) -> None:
        if characters <= MAX_CHARACTERS:
            self._values[key] = value
            if len(self._values) > REMEMBERED:
                del self._values[next(iter(self._values))]


class _Places:
    """Stands in for Math-Verify's ``extract_match``, which reads one place of a text.

    Attributes:
        tried: the places read since the last `clear`: their pattern and what it found. A reading
            depends on these alone (each pattern belongs to one kind of reading).
        characters: in them.
    """

    def __init__(self) -> None:
        self.tried: list[Hashable] = []
        self.characters = 0
        self._readings: _Memory[tuple[Any, str]] = _Memory()

    def clear(self) -> None:
        self.tried, self.characters = [], 0

    def extract_match(self, match: Match[str], target_type: Any) -> tuple[Any, str]:
        place = (match.re, match.groups())
        characters = sum(len(group) for group in match.groups() if group)
        self.tried.append(place)
        self.characters += characters
        reading = self._readings.get(place)
        if reading is None:
            reading = extract_match(match, target_type)
            self._readings.put(place, reading, characters)
        return reading


class _Guarded:
    """A pattern that is searched only where its words are, which is soon seen."""

    def __init__(self, pattern: Pattern[str], words: str) -> None:
        self._pattern, self._words = pattern, words

    def finditer(self, text: str) -> Iterable[Match[str]]:
        # Beyond ASCII, letters such as the Turkish dotless i match in ways that `lower` lacks.
        if text.isascii() and self._words not in text.lower():
            return ()
        return self._pattern.finditer(text)


def _guarded(pattern: Pattern[str]) -> Any:
    guard = "(?i:final answer"
    return _Guarded(pattern, "final answer") if pattern.pattern.startswith(guard) else pattern


def _find_regexes(targets: list) -> list:
    """Stand in for Math-Verify's ``get_extraction_regexes``, which hashes long settings."""
    if (regexes := _regexes.get(id(targets))) is None:
        return get_extraction_regexes(targets)
    return regexes


_regexes = {
    id(targets): [
        ([(_guarded(pattern), priority) for pattern, priority in patterns], target)
        for patterns, target in get_extraction_regexes(targets)
    ]
    for targets in (_LATEX, _EXPRESSION_AND_LATEX)
}
parser.get_extraction_regexes = _find_regexes
_places = _Places()
parser.extract_match = _places.extract_match
sympy_names.install()
_golds: _Memory[list] = _Memory()
_verdicts: _Memory["Equivalence"] = _Memory()


class Equivalence(NamedTuple):
    """Verdict on one response."""

    correct: bool
    extracted: str | None  # the text taken for the answer, in Math-Verify's normal form
    unparsed: bool  # not correct, and one of the two sides has no mathematical reading


def math_equal(gold: str, response: str) -> Equivalence:
    r"""Compare a response with the gold answer.

    The gold answer is read as LaTeX inside ``\boxed{}``, the response both as plain expressions and
    as LaTeX. Correct if any reading of one equals any reading of the other. As always in
    Math-Verify, the extracted text itself counts as a reading too, compared letter by letter; and
    of several boxes the last one is the answer, together with those close before it, as a set.
    """
    _places.clear()
    answers = parse(response, _EXPRESSION_AND_LATEX, parsing_timeout=None)
    key, characters = (gold, *_places.tried), len(gold) + _places.characters
    if answers and not _places.tried:  # another Math-Verify, which goes about it differently
        return _compare(_gold(gold), answers)
    verdict = _verdicts.get(key)
    if verdict is None:
        verdict = _compare(_gold(gold), answers)
        _verdicts.put(key, verdict, characters)
    return verdict


def _compare(golds: list, answers: list) -> Equivalence:
    correct = bool(verify(golds, answers, timeout_seconds=None))
    extracted = next((text for text in answers if isinstance(text, str)), None)
    return Equivalence(correct, extracted, not correct and not (_read(golds) and _read(answers)))


def _gold(gold: str) -> list:
    if (readings := _golds.get(gold)) is None:
        readings = parse(f"\\boxed{{{gold}}}", _LATEX, parsing_timeout=None)
        _golds.put(gold, readings, len(gold))
    return readings


def _read(readings: list) -> bool:
    return any(not isinstance(reading, str) for reading in readings)
