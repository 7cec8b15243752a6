r"""Mathematical equivalence by Math-Verify: the evaluation rule of the ReSPO study (Appendix D.2).

Import this module in a worker process only (see `respo.rewards.workers`): a short answer such as
``9^{9^9}`` keeps sympy busy for hours. Math-Verify's own time-outs are switched off: they work by
signals, which raise outside a main thread and do not interrupt arithmetic on long integers.
"""

from typing import NamedTuple

from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify

_LATEX = [LatexExtractionConfig()]
_EXPRESSION_AND_LATEX = [ExprExtractionConfig(), LatexExtractionConfig()]


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
    golds = parse(f"\\boxed{{{gold}}}", _LATEX, parsing_timeout=None)
    answers = parse(response, _EXPRESSION_AND_LATEX, parsing_timeout=None)
    correct = bool(verify(golds, answers, timeout_seconds=None))
    extracted = next((text for text in answers if isinstance(text, str)), None)
    return Equivalence(correct, extracted, not correct and not (_read(golds) and _read(answers)))


def _read(readings: list) -> bool:
    return any(not isinstance(reading, str) for reading in readings)
