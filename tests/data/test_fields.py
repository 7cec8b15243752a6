"""Questions and gold answers as data sets write them."""

import pytest

from respo.data.fields import NoAnswer, field, gold_answer, name, question


def test_fields_are_found_by_their_path():
    values = {"reward_model": {"ground_truth": "34", "style": "rule"}, "answer": 0}
    assert field(values, "reward_model.ground_truth") == "34"
    assert field(values, "answer") == 0


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("b", "field 'b' is missing; there are a, n"),
        ("a.c", "field 'a.c' is missing; there are b"),
        ("a.b.c", "field 'a.b.c' is missing; there are no fields"),
        ("n", "field 'n' is null"),
    ],
)
def test_fields_that_are_missing(path, expected):
    with pytest.raises(ValueError, match=f"^{expected}$"):
        field({"a": {"b": 1}, "n": None}, path)


@pytest.mark.parametrize(
    ("value", "expected"),
    [(" 1+1\n", "1+1"), ([{"role": "user", "content": "1+1 "}], "1+1")],
)
def test_questions(value, expected):
    assert question(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (" \n", "the prompt is empty"),
        (3, "the prompt is of type int, not a text"),
        ([], "list, but not of one message"),
        (["1+1"], "list, but not of one message"),
        ([{"role": "system", "content": "x"}], "list, but not of one message"),
        ([{"role": "user", "content": "x"}, {"role": "user", "content": "y"}], "not of one"),
        ([{"role": "user", "content": None}], "the prompt is null"),
        ("\ud800", "surrogates not allowed"),
    ],
)
def test_bad_questions(value, expected):
    with pytest.raises(ValueError, match=expected):
        question(value)


@pytest.mark.parametrize(
    ("value", "form", "expected"),
    [
        # One canonical form of an AIME answer, whichever way it is stored.
        *[(value, "integer", "33") for value in ("33", "033", "33.0", "33.", " 33\n", 33, 33.0)],
        *[(value, "integer", "33") for value in ("$33$", r"33^\circ", r"33^{\circ}", "33°", "+33")],
        *[(value, "integer", "0") for value in ("000", "-0", 0, -0.0)],
        ("-1.0", "integer", "-1"),
        # As the data have them: units, several answers, decimals.
        (r" 4.5e33\mathrm{~cm} ", "text", r"4.5e33\mathrm{~cm}"),
        (["$69$,$84$"], "text", "$69$,$84$"),
        ([2], "text", "2"),
        ("033", "text", "033"),
        # Numbers of JSON and Parquet: plain decimals, as somebody would write them.
        (27.0, "text", "27"),
        (-0.0, "text", "0"),
        (-2.50, "text", "-2.5"),
        (1e-7, "text", "0.0000001"),
        (1.5e-7, "text", "0.00000015"),
        (1e22, "text", "1" + 22 * "0"),
        (1e22, "integer", "1" + 22 * "0"),
        (999999999999999.0, "text", "999999999999999"),
        (123456789012345678901, "text", "123456789012345678901"),
        # A list as JSON, as Skywork-OR1 has it.
        (r'["\\frac{1}{2}"]', "list", r"\frac{1}{2}"),
        ("[7]", "list", "7"),
        (r"so $\boxed{1}$, no: $\boxed{\frac{1}{2}}$." + 500 * "x", "boxed", r"\frac{1}{2}"),
    ],
)
def test_gold_answers(value, form, expected):
    assert gold_answer(value, form) == expected


@pytest.mark.parametrize(
    ("value", "form", "expected"),
    [
        ("", "text", "the answer is empty"),
        (" ", "text", "the answer is empty"),
        (True, "text", "the answer is of type bool"),
        ({"a": 1}, "text", "the answer is of type dict"),
        ([None], "text", "the answer is null"),
        (["1", "2"], "text", "a list of 2, not of one"),
        ([], "text", "a list of 0, not of one"),
        (float("nan"), "text", "the answer is nan"),
        (123456789012345678901.0, "text", "more digits than are exact; quote it"),
        (12345678901234567.0, "integer", "more digits than are exact"),
        (0.1 + 0.2, "text", "the answer 0.30000000000000004 is a number with more digits"),
        ("33.5", "integer", "'33.5' is not an integer"),
        ("1/2", "integer", "is not an integer"),
        ("３３", "integer", "is not an integer"),
        ("33", "boxed", "no complete"),
        (r"\boxed{3", "boxed", "no complete"),
        (r"\boxed{ }", "boxed", "the answer is empty"),
        ("1/2", "list", "the answer '1/2' is not a list as JSON"),
        ('"1"', "list", "is not a list as JSON"),
        (5, "list", "the answer '5' is not a list as JSON"),
        ("[[1]]", "list", "the answer is of type list"),
    ],
)
def test_bad_gold_answers(value, form, expected):
    with pytest.raises(ValueError, match=expected):
        gold_answer(value, form)


@pytest.mark.parametrize(
    ("value", "form"),
    [(" ", "text"), ([], "text"), (["1", "2"], "text"), ("[]", "list"), ('["1", "2"]', "list")],
)
def test_no_answer_or_several(value, form):
    with pytest.raises(NoAnswer):
        gold_answer(value, form)


def test_names():
    assert name(60) == "60"
    assert name("2024-I-1") == "2024-I-1"
    for value in ("", True, 1.5, ["a"]):
        with pytest.raises(ValueError, match="the id is"):
            name(value)
