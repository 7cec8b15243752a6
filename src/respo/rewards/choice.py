r"""The option that a response to a multiple-choice question names: a letter from A to J.

One rule for all benchmarks. What counts, in a response without its reasoning (all that comes before
the last `</think>`; a reasoning that never ends has no answer), are statements of these forms:

- a box whose content begins with the letter: `\boxed{B}`, `\boxed{\text{B}}`, `\boxed{(B)}`,
  `\boxed{B. text}`, also in lower case;
- a phrase: `the answer is B`, `Answer: (B)`, `correct option: B`, `B is the right choice`;
- a letter alone on its line, `**B**`, or a response of one line that begins as an option does,
  `B) text`.

The last statement wins. One that names several letters (`\boxed{B, C}`, `the answer is B or C`) is
a statement of none. Bold type, dollar signs and the text commands of LaTeX do not matter. A capital
that merely stands in a sentence is no statement: `A good idea is C` has none.

Others differ. The script of MMLU-Pro (Wang et al., 2024) takes the *first* `answer is (B)`, else
the last `Answer: B` of a line, else the last letter that stands alone anywhere, else one at random;
lm-evaluation-harness takes the first `answer is (B)` and nothing else. Both know no box.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

# Every repetition is bounded or ends at a character that it excludes: long responses take no longer
# than their length.
_DECORATION = re.compile(r"[*`$]|\\[()\[\],;!]|\\(?:text|textbf|textit|textrm|mathrm|mathbf|bf)\b")
_BOX = re.compile(r"\\(?:boxed|fbox)\s{0,3}\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}")
_IN_BOX = re.compile(
    r"[\s({\[]{0,8}(?:(?:option|choice|answer)\s{0,3}:?\s{1,3})?[({\[]{0,2}([a-j])(?:[\s)}\].:,]|$)",
    re.IGNORECASE,
)
_PHRASE = re.compile(
    r"\b(?i:answer|option|choice)\s{0,4}(?:(?i:is|would\ be|should\ be|must\ be)\s{0,4}:?|[:=])"
    r"\s{0,4}(?i:(?:the\s{1,3})?(?:option|choice|letter)\s{1,4})?[(\[{\"']{0,3}([A-J])(?![\w'’])",
    re.VERBOSE,
)
_VERDICT = re.compile(
    r"(?<![\w'’])([A-J])[)\]}]{0,2}\s{1,3}is\s{1,3}the\s{1,3}(?:correct|right|best)\s{1,3}"
    r"(?:answer|option|choice)\b"
)
_ALONE = re.compile(r"^[^\S\n]{0,8}[(\[{]{0,2}([A-J])[)\]}.:]{0,3}[^\S\n]{0,8}$", re.MULTILINE)
_OPTION = re.compile(r"\s*[(\[]?([A-J])[).:\]]\s[^\n]*\s*")
# What follows a letter if it is one of several that are named.
_SEVERAL = re.compile(
    r"[)\]}.\"']{0,3}\s{0,3}(?:(?:or|and|&|/)\s{0,3}|,\s{0,3}(?=[(\[{]{0,2}[A-Ja-j][)\]}]{0,2}\s{0,3}"
    r"(?:[,.;]|and\b|or\b|$)))(?:option\s|choice\s)?[(\[{]{0,2}[A-Ja-j](?!\w)"
)
# `A` and `I` are words too: what comes after them must not go on as a sentence does, but for these.
_WORDS = re.compile(
    r"\s{1,3}(?!(?:because|since|as|due|and|or|for|given|which|with|by|from|in)\b)[a-z]"
)


class _Statement(NamedTuple):
    place: int
    letter: str | None


def choice_letter(response: str) -> str | None:
    """Return the letter that a response names as its answer, in upper case; None if there is none.

    Args:
        response: the text of the model.
    """
    answer = response.rpartition("</think>")[2]
    if "<think>" in answer:
        return None
    text = _DECORATION.sub("", answer)
    if one_line := _OPTION.fullmatch(text):
        return one_line[1]
    return max(_statements(text), default=_Statement(0, None), key=lambda found: found.place).letter


def _statements(text: str) -> Iterator[_Statement]:
    for box in _BOX.finditer(text):
        content = box[1]
        if found := _IN_BOX.match(content):
            none = _SEVERAL.match(content, found.end(1)) or _is_word(content.strip("{} "), 0)
            yield _Statement(box.start(1), None if none else found[1].upper())
    for found in _PHRASE.finditer(text):
        if not _is_word(text, found.start(1)):
            several = _SEVERAL.match(text, found.end(1))
            yield _Statement(found.start(1), None if several else found[1])
    for pattern in (_VERDICT, _ALONE):
        for found in pattern.finditer(text):
            yield _Statement(found.start(1), found[1])


def _is_word(text: str, place: int) -> bool:
    """Tell whether the letter at a place is the article or the pronoun."""
    return text[place : place + 1] in ("A", "I", "a", "i") and bool(_WORDS.match(text, place + 1))
