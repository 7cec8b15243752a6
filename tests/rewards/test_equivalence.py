r"""Remembered verdicts are those of Math-Verify itself, called directly for each response."""

import json
import os
import re
from pathlib import Path

import pytest
from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, parser, verify

from respo.rewards import equivalence
from respo.rewards.equivalence import Equivalence, math_equal

SHARED = Path(os.environ.get("RESPO_SHARED", Path(__file__).parents[3] / "shared"))

LATEX = [LatexExtractionConfig()]
BOTH = [ExprExtractionConfig(), LatexExtractionConfig()]


def directly(gold: str, response: str, monkeypatch: pytest.MonkeyPatch) -> Equivalence:
    """Return what two calls of `parse` and one of `verify` say, without our part in them."""
    with monkeypatch.context() as patch:
        patch.setattr(parser, "extract_match", equivalence.extract_match)
        patch.setattr(parser, "get_extraction_regexes", equivalence.get_extraction_regexes)
        golds = parse(f"\\boxed{{{gold}}}", LATEX, parsing_timeout=None)
        answers = parse(response, BOTH, parsing_timeout=None)
        correct = verify(golds, answers, timeout_seconds=None)
    read = all(any(not isinstance(r, str) for r in side) for side in (golds, answers))
    text = next((answer for answer in answers if isinstance(answer, str)), None)
    return Equivalence(correct, text, not correct and not read)


GOLDS = ["3", "33", "1/2", r"\frac{1}{2}", "50", r"50\%", r"\{1,2\}", "(1,2)", "x=5", "10{,}000"]
GOLDS += [r"5 \text{ cm}", "", "x^2+1", r"\begin{pmatrix}1\\2\end{pmatrix}", "[1, 2)", r"90^\circ"]
RESPONSES = [
    "",
    " \n",
    "no idea",
    "(" * 1000,
    r"\boxed{}",
    r"\boxed{3",
    r"\boxed{\boxed{3}}",
    "3",
    "The answer is 3.",
    "final answer is 3. I hope it is correct.",
    r"Final Answer: The final answer is $\frac12$. I hope it is correct.",
    "FINAL ANSWER: it is 3. The Final answer is 33",
    "The f\u0131nal an\u017fwer is $3$, not $4$. I hope so.",
    r"final answer is \boxed{3}, or \boxed{33} \u0130",
    "answer: 50%",
    "answer: 50 percent",
    r"\boxed{50\%}",
    r"\boxed{50}\%",
    r"$\boxed{50}$ percent",
    "we find 1/2 or 0.5",
    "1,000 and 10,000",
    r"\boxed{10000}",
    r"so \boxed{33} ... no, \boxed{34}",
    r"either \boxed{1} or \boxed{2}",
    r"$1$, $2$ and $3$",
    r"\boxed{1} and \boxed{2}, thus $\boxed{x}$",
    r"\boxed{\{2,1\}} and then some text}",
    r"\boxed{(1,2)}",
    r"\[x = \boxed{5}\]",
    r"\[\boxed{x = 5}\]",
    r"\boxed{5\text{ cm}}",
    r"\boxed{5\,\mathrm{cm}}",
    r"\boxed{5 cm}",
    r"\boxed{1 + x^2} after which the proof goes on with 17",
    r"$x^2 + 1$",
    r"\boxed{\begin{pmatrix}1\\2\end{pmatrix}}",
    r"\boxed{[1,2)}",
    r"\boxed{90}",
    r"\boxed{90^{\circ}}",
    r"$\frac{1}{$ and $2$",
    r"\boxed{\frac{1}{2}",
    r"\boxed{\nonsense{1}{2}}",
    r"\boxed{33} $\unreadable{$ \boxed{\frac}",
    "$$ 3 $$ \\[ 33 \\] \\( 50 \\)",
    "-\\frac{1}{2} 1/2",
    "\ud800 \x00 \\boxed{33}",
    r"\boxed{3.0000001}",
    r"\boxed{\text{A}}",
    "**3**",
    "$5 dollars",
]


def test_verdicts_of_direct_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every text with some gold answers, and again from memory, inside another response."""
    texts = [*RESPONSES, *GOLDS]
    pairs = [(GOLDS[(row + 5 * n) % 16], text) for row, text in enumerate(texts) for n in range(3)]
    pairs += [(gold, rf"\boxed{{{gold}}}") for gold in GOLDS]
    pairs += [(gold, "Hm. " + response) for gold, response in pairs]
    expected = [directly(*pair, monkeypatch) for pair in pairs]
    assert [math_equal(*pair) for pair in pairs] == expected
    assert [math_equal(*pair) for pair in pairs] == expected
    assert sum(verdict.correct for verdict in expected) > 30


@pytest.mark.skipif(not SHARED.exists(), reason="needs the shared responses")
def test_verdicts_of_real_responses(monkeypatch: pytest.MonkeyPatch) -> None:
    path = SHARED / "data/generations/math_50x8.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    pairs = [(row["answer"], response) for row in rows for response in row["responses"]]
    golds = list(dict.fromkeys(row["answer"] for row in rows))
    # Wrong pairs too: each response with the answer of the problem before.
    pairs += [(golds[golds.index(gold) - 1], response) for gold, response in pairs[::4]]
    pairs += [(gold, other) for gold in golds for other in (gold, rf"\boxed{{{gold}}}")]
    assert len(pairs) > 550
    verdicts = [math_equal(*pair) for pair in pairs]
    assert verdicts == [directly(*pair, monkeypatch) for pair in pairs]
    assert [math_equal(*pair) for pair in pairs] == verdicts


def count_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows with each call of Math-Verify's slow parts."""
    calls: list[str] = []

    def counted(name: str, function):
        def call(*args, **kwargs):
            calls.append(name)
            return function(*args, **kwargs)

        return call

    monkeypatch.setattr(equivalence, "verify", counted("verify", verify))
    monkeypatch.setattr(equivalence, "extract_match", counted("extract", equivalence.extract_match))
    return calls


def test_equal_answers_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_calls(monkeypatch)
    for reasoning in ("It is", "We add 3 and 4 and get", "Clearly:"):
        assert math_equal("4711", rf"{reasoning} \boxed{{4711}}.").correct
    assert sorted(calls) == ["extract", "verify"]  # the gold answer looks the same
    assert not math_equal("4711", r"It is \boxed{4712}.").correct
    assert sorted(calls) == ["extract"] * 2 + ["verify"] * 2
    # Another gold answer is another comparison, of the same reading.
    assert not math_equal("815", r"It is \boxed{4711}.").correct
    assert sorted(calls) == ["extract"] * 3 + ["verify"] * 3


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equivalence, "REMEMBERED", 5)
    memory = equivalence._Memory[int]()
    for n in range(1, 8):
        memory.put(n, n, characters=equivalence.MAX_CHARACTERS)
        memory.get(3)
    assert memory._values == {4: 4, 5: 5, 6: 6, 3: 3, 7: 7}
    memory.put(8, 8, characters=equivalence.MAX_CHARACTERS + 1)
    assert memory.get(8) is None
    calls = count_calls(monkeypatch)
    for _ in range(2):
        math_equal("1", rf"\boxed{{{'1 + ' * 300}1}}")
    assert calls.count("verify") == 2  # a long answer


# What the memory relies on in the installed Math-Verify. If one of these fails, compare its
# `extract_target_from_pred` with the docstring of `respo.rewards.equivalence`.


def test_every_reading_goes_through_us() -> None:
    assert parser.extract_match == equivalence._places.extract_match
    for text in (r"\boxed{1}", "1", "$x$", "answer: 1/2"):
        equivalence._places.clear()
        assert parse(text, BOTH, parsing_timeout=None)
        assert equivalence._places.tried, text


class Groups:
    """A match that tells its groups and nothing else."""

    def __init__(self, match: re.Match[str]) -> None:
        self.groupdict = match.groupdict


@pytest.mark.parametrize("text", RESPONSES)
def test_a_reading_depends_on_the_groups_alone(text: str) -> None:
    regexes = parser.get_extraction_regexes(BOTH)
    for patterns, target in regexes:
        for pattern, _ in patterns:
            for match in pattern.finditer(text):
                whole = equivalence.extract_match(match, target)
                assert equivalence.extract_match(Groups(match), target) == whole


def test_each_pattern_belongs_to_one_kind_of_reading() -> None:
    kinds: dict[re.Pattern[str], set[type]] = {}
    for config in (LATEX, BOTH):
        for patterns, target in parser.get_extraction_regexes(config):
            for pattern, _ in patterns:
                kinds.setdefault(pattern, set()).add(type(target))
    assert {len(found) for found in kinds.values()} == {1}


def test_a_guarded_pattern_finds_what_it_did() -> None:
    guarded = 0
    for patterns, _ in equivalence._regexes[id(equivalence._EXPRESSION_AND_LATEX)]:
        for pattern, _ in patterns:
            if isinstance(pattern, equivalence._Guarded):
                guarded += 1
                for text in RESPONSES:
                    found = [match.span() for match in pattern.finditer(text)]
                    assert found == [match.span() for match in pattern._pattern.finditer(text)]
    assert guarded == 4
    # Another choice of targets is Math-Verify's own affair.
    assert parser.get_extraction_regexes(LATEX) == equivalence.get_extraction_regexes(LATEX)


def test_another_math_verify_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """One whose `parse` does not call `extract_match` as a global."""
    calls = count_calls(monkeypatch)
    monkeypatch.setattr(equivalence, "parse", lambda text, *_, **__: [text[-2]])
    assert not math_equal("8", "7.").correct
    assert not math_equal("8", "7.").correct
    assert calls == ["verify"] * 2
