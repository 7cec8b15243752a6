"""Any response gets a verdict: no exception, in time, the same one each time."""

import json
import os
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from respo.rewards import boxed_answer, strict_box
from respo.rewards.choice import choice_letter
from respo.rewards.code.compare import same_output, same_value
from respo.rewards.code.problem import read_problem
from respo.rewards.code.program import last_program
from respo.rewards.workers import WorkerPool

FUZZ = int(os.environ.get("RESPO_FUZZ", "1"))  # times as many examples
fuzz = settings(
    max_examples=200 * FUZZ,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)

PIECES = [
    *("\\boxed{", "\\fbox{", "{", "}", "\\{", "\\}", "\\", "$", "$$", "\\[", "\\]", "\\(", "\\)"),
    *(
        "\\frac{1}{2}",
        "\\sqrt",
        "^",
        "_",
        "&",
        "\\\\",
        "\\text{",
        "\\begin{pmatrix}",
        "\\pi",
        "\\%",
    ),
    *(
        "<think>",
        "</think>",
        "<answer>",
        "**",
        "*",
        "(",
        ")",
        "[",
        "]",
        "|",
        "/",
        "=",
        "+",
        "-",
        ",",
    ),
    *(
        "answer",
        "The answer is ",
        "final answer is ",
        "I hope",
        "Option ",
        "wrong ",
        "correct",
        " is ",
    ),
    *(
        "therefore, ",
        " or ",
        " and ",
        "A",
        "B",
        "c",
        "J",
        "e",
        "x",
        "i",
        "1",
        "33",
        "0.5",
        "1e9",
        "3!",
    ),
    *(
        "10%",
        "3/4",
        "\n",
        "\n\n",
        " ",
        ". ",
        ": ",
        "```",
        "```python",
        "print(1)",
        "\t",
        "\r",
        "\x00",
    ),
    *(
        "\x1b[2J",
        "\ud800",
        "é",
        "日",
        "３",
        "\u202e",
        "\u0130",
        "__import__('os')",
        "lambda",
        "0x1",
    ),
]
RESPONSES = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=20).map("".join)


@given(RESPONSES, RESPONSES)
@fuzz
def test_rules_of_text(response, gold):
    letter = choice_letter(response)
    assert letter is None or letter in "ABCDEFGHIJ"
    assert choice_letter(response) == letter
    content = boxed_answer(response)
    assert content is None or f"\\boxed{{{content}}}" in response[-100:]
    assert strict_box(response, gold) == (1.0 if content == gold else -1.0)
    program = last_program(response)
    assert program is None or program in response


@given(st.sampled_from(PIECES), st.sampled_from(PIECES), st.sampled_from(PIECES))
@settings(fuzz, max_examples=60 * FUZZ)
def test_time_grows_with_the_length_only(first, second, third):
    """What a response repeats does not make it slow."""
    response = first * 5000 + (second + third) * 5000
    start = time.process_time()
    choice_letter(response)
    strict_box(response, "3")
    last_program(response)
    assert time.process_time() - start < 2


NUMBERS = st.sampled_from(["1", "1.0", "01", "1e5", "nan", "sNaN", "inf", "-0", "1e999999999", "x"])
OUTPUTS = st.lists(NUMBERS | st.sampled_from(["\n", " ", "1\x1c2"]) | st.text(max_size=3)).map(
    "".join
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=5,
)


@given(OUTPUTS, OUTPUTS)
@fuzz
def test_outputs_are_compared(expected, output):
    assert same_output(expected, output) == same_output(output, expected) or (
        abs(len(expected) - len(output)) > 500  # one is far longer than the other
    )
    assert same_output(expected, expected)
    assert not same_output(expected, expected + "\nx")


@given(JSON.map(json.dumps), JSON.map(json.dumps) | st.text(max_size=20))
@fuzz
def test_values_are_compared(expected, output):
    assert same_value(expected, expected) or "NaN" in expected
    assert isinstance(same_value(expected, output), bool)
    assert not same_value(expected, output + "]")


@given(JSON.map(json.dumps) | st.text(max_size=20))
@fuzz
def test_texts_that_are_no_tests(text):
    with pytest.raises(ValueError, match="tests of a code problem"):
        read_problem(text)


@given(st.lists(st.tuples(RESPONSES, RESPONSES), max_size=12))
@settings(fuzz, max_examples=4 * FUZZ)
def test_equivalence(pairs):
    """In a worker that must neither die nor send anything but verdicts."""
    with WorkerPool(1, seconds=5) as pool:
        verdicts = pool.check(pairs)
        assert len(verdicts) == len(pairs)
        for verdict, again in zip(verdicts, pool.check(pairs), strict=True):
            assert verdict.status in ("ok", "unparsed", "timeout", "failed")
            if "timeout" not in (verdict.status, again.status):
                assert verdict == again
