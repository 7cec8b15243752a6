r"""The option that a response to a multiple-choice question names: a letter from A to J.

One rule for all benchmarks, on a response without its reasoning (all that comes before the last
`</think>`; a reasoning that never ends has no answer). The first of these that there is decides:

1. The last box with a letter: alone or in brackets, or before `)`, `.`, `:` or a dash and the text
   of the option, as in `\boxed{B}`, `\boxed{\text{(b)}}`, `\boxed{Option B}`, `\boxed{B. text}`.
2. The last statement in words: `the answer is B`, `Answer: **B. text**`, `Option B is correct.`,
   `Therefore, B.` The letter stands alone or in brackets, bold type or quotes, and the sentence
   does not go on after it as after an article or a name.
3. A letter alone on its line, if all such lines have the same one; else a last line in bold type or
   with a bracketed letter, `**B. text**`, `(B) text`; else a response of one line, `B) text`.

What names several letters (`\boxed{B, C}`, `the answer is B or C`) is a statement of none. Dollar
signs, the font commands of LaTeX and of HTML do not matter. Rather none than a wrong letter: a
capital that merely stands in a sentence is none (`A good idea is C`), nor is `E. coli`, where a
point and a small letter follow outside of bold type and of the beginning of a line; so `The answer
is B. the cell` has none. Nor have a small letter outside of a box, `B) text` below other lines, and
other languages. A name that begins a response of one line passes for an option: `J. Smith says so`
has J, as `J. Saturn` must.

Others differ. The script of MMLU-Pro (Wang et al., 2024) takes the *first* `answer is (B)`, else
the last `Answer: B` of a line, else the last letter that stands alone anywhere, else one at random;
lm-evaluation-harness takes the first `answer is (B)` and nothing else. Both know no box.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

# Every repetition is bounded or ends at a character that it excludes: long responses take no longer
# than their length.
_BOLD = re.compile(r"\\(?:textbf|mathbf|boldsymbol|bf)(?![A-Za-z])|</?(?:b|strong)>", re.IGNORECASE)
_QUOTED = re.compile(r"(?<!\w)(?:__|_|[\"'“‘])([A-J])(?:__|_|[\"'”’])(?!\w)")
_TAG = re.compile(r"<answer>", re.IGNORECASE)
_PLAIN = re.compile(
    r"\\(?:(?:text|math)(?:rm|it|sf|tt|cal)?|mbox|displaystyle|[lL]arge)(?![A-Za-z])"
    r"|</?(?:i|em|u|p|span|answer)>|\\[()\[\]]|[{}`$]"
)
_SPACE = re.compile(r"\\[ ,;!]|~|&nbsp;")

_BRACES = re.compile(r"(?:boxed|fbox)\s{0,3}\{|\\[{}]|[{}]")
_IN_BOX = re.compile(
    r"(?:(?:the\s)?(?:(?:correct|right|final)\s)?(?:option|choice|answer)\s{0,3}(?:is\b)?:?\s{1,3})?"
    r"[(\[]{0,2}([a-j])(?!\w)",
    re.IGNORECASE,
)
_AFTER_IN_BOX = re.compile(
    r"[)\]]{0,2}[.:]?(?:\s{0,3}$|(?<=[)\].:])\s"
    # No formula: the next letter does not stand alone.
    r"|\s[-–—:]\s(?![A-Za-z]\s{0,3}(?:$|[-+*/^=])))"
)

_MARK = r"(?P<mark>[*(\[]{0,5})"
_PHRASE = re.compile(
    r"\b(?i:(?P<wrong>wrong|incorrect|false)\s{1,3})?(?i:answer|(?:correct|right|best)\s{1,3}(?:option|choice))"
    r"(?i:\s{1,3}to\s{1,3}(?:the|this)\s{1,3}(?:question|problem))?(?:,\s{1,3}[a-z]{1,12},)?"
    r"\*{0,3}\s{0,4}"
    r"(?:(?i:is|would\ be|should\ be|must\ be)\b\s{0,4}:?|[:=：]|[-–—]\s|(?<=\n))"
    r"(?:\*{1,3}(?=\s|(?i:option|choice)\s))?\s{0,4}"
    r"(?i:(?:therefore|thus|hence|indeed|clearly|likely|probably|definitely),?\s{1,3})?"
    r"(?i:(?:the\s{1,3})?(?:option|choice|letter)\s{1,4})?" + _MARK + r"(?P<letter>[A-J])(?!\w)",
    re.VERBOSE,
)
_AFTER = (
    r"[)\]:,;!?]|\*{1,3}(?!\w)|[^\S\n]{0,8}(?:\n|\Z)|\s{1,3}(?:[(–—]|-\s)"
    r"|\s{1,3}(?:because|since|as|due|and|or|for|given|which|with|by|from|in)\b"
)
_AFTER_PLAIN = re.compile(_AFTER + r"|\.(?!\w|[^\S\n]{1,3}[a-z])")
_AFTER_MARKED = re.compile(_AFTER + r"|\.(?!\w)")
_VERDICT = re.compile(
    r"(?:^|[.,;:!?]\s|\b(?i:option|choice|answer|so|thus|hence|therefore|only)\s)\s{0,3}"
    + _MARK
    + r"(?P<letter>[A-J])[)\]*]{0,5}\s{1,3}is\s{1,3}(?:the\s{1,3}(?:correct|right|best)\s{1,3}"
    r"(?:answer|option|choice)\b|(?:correct|right)\*{0,3}(?=[.,;!\n]|\Z))",
    re.MULTILINE,
)
_THEREFORE = re.compile(
    r"\b(?i:therefore|hence|thus|so),?\s{1,3}(?i:(?:option|choice)\s)?"
    + _MARK
    + r"(?P<letter>[A-J])[)\]*.!]{0,6}[^\S\n]{0,8}$",
    re.MULTILINE,
)
# What follows a letter if it is one of several that are named.
_SEVERAL = re.compile(
    r"[)\].*]{0,5}\s{0,3}(?:(?:or|and|&|/)\s{0,3}|,\s{0,3}(?=[*(\[]{0,4}[A-Ja-j][)\]*]{0,4}\s{0,3}"
    r"(?:[,.;]|and\b|or\b|$)))(?:option\s|choice\s)?[*(\[]{0,4}[A-Ja-j](?!\w)(?!\s{1,3}is\b)"
)

_ALONE = re.compile(
    r"^[^\S\n]{0,8}(?i:(?:option|choice)\s)?[*(\[]{0,5}([A-J])[)\]*.:]{0,6}[^\S\n]{0,8}$",
    re.MULTILINE,
)
_LAST_LINE = re.compile(r"(?:\*\*[(\[]?([A-J])[)\].:]{1,2}\s.*\*\*\.?|[(\[]([A-J])[)\]]\s.*)")
_ONE_LINE = re.compile(r"[(\[]?([A-J])(?:[):\]]|\.(?!\s{1,3}[a-z]))\s.*")


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
    text = _cleaned(answer)
    for statements in (_boxes(answer), _phrases(text)):
        if last := max(statements, default=None, key=lambda statement: statement.place):
            return last.letter
    return _lone_letter(text.strip())


def _cleaned(text: str) -> str:
    """Remove what has no say; what stresses a letter becomes asterisks."""
    text = _TAG.sub("\nAnswer: ", text)
    text = _PLAIN.sub("", _SPACE.sub(" ", _BOLD.sub("**", text)))
    return _QUOTED.sub(r"**\1**", text)


def _boxes(text: str) -> Iterator[_Statement]:
    for place, content in _innermost_boxes(text):
        content = _cleaned(content).replace("*", "").strip()
        if found := _IN_BOX.match(content):
            if _SEVERAL.match(content, found.end(1)):
                yield _Statement(place, None)
            elif _AFTER_IN_BOX.match(content, found.end(1)):
                yield _Statement(place, found[1].upper())


def _innermost_boxes(text: str) -> Iterator[tuple[int, str]]:
    """Yield place and content of each closed box that holds no other."""
    opened: list[int | None] = []  # where the content of a box begins, None for other braces
    inside = 0  # of a box that holds another, what comes after this is not its whole content
    for found in _BRACES.finditer(text):
        if found[0] == "}":
            if opened and (start := opened.pop()) is not None and start >= inside:
                yield start, text[start : found.start()]
                inside = found.end()
        elif found[0] == "{":
            opened.append(None)
        elif found[0].endswith("{") and found[0][0] != "\\":
            opened.append(found.end())


def _phrases(text: str) -> Iterator[_Statement]:
    for found in _PHRASE.finditer(text):
        place = found.start("letter")
        # Stressed, or at the beginning of a line, it is no initial of a name.
        stressed = found["mark"] or text[place - 1] == "\n"
        after = _AFTER_MARKED if stressed else _AFTER_PLAIN
        if found["wrong"]:
            continue
        if _SEVERAL.match(text, found.end()):
            yield _Statement(place, None)
        elif after.match(text, found.end()):
            yield _Statement(place, found["letter"])
    for pattern in (_VERDICT, _THEREFORE):
        for found in pattern.finditer(text):
            yield _Statement(found.start("letter"), found["letter"])


def _lone_letter(text: str) -> str | None:
    """Return the letter that makes up a line, or begins the last one or the only one."""
    if alone := {found[1] for found in _ALONE.finditer(text)}:
        return alone.pop() if len(alone) == 1 else None
    before, _, last = text.rpartition("\n")
    if found := _LAST_LINE.fullmatch(last.strip()):
        return found[1] or found[2]
    if not before and (found := _ONE_LINE.fullmatch(last)):
        return found[1]
    return None
