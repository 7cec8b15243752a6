"""Questions with options, in the forms in which ARC, GPQA and MMLU-Pro are published."""

import csv
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from respo.cli import UserError
from respo.config.schema import Choices
from respo.data.choices import read_choices
from respo.rewards.choice import choice_letter

FIELDS = {"prompt": "q", "options": ["o"], "answer": "a"}


def config(**changes):
    values = {"source": "choices", "path": "x", "fields": FIELDS, **changes}
    return Choices.model_validate(values)


@pytest.fixture
def read(tmp_path):
    def read(*rows, **changes):
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return read_choices(config(**changes), [path]).rows

    return read


def test_arc(tmp_path):
    rows = [
        {
            "id": "Mercury_1",
            "question": "Which is a metal?",
            "choices": {"text": ["tin", "tea", "tar"], "label": ["A", "B", "C"]},
            "answerKey": "C",
        },
        {
            "id": "NYSED_2",
            "question": "Which is wet?",
            "choices": {"text": ["a", "b", "c", "d"], "label": ["1", "2", "3", "4"]},
            "answerKey": "2",
        },
    ]
    path = tmp_path / "test.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    fields = {"id": "id", "prompt": "question", "options": ["choices.text"]}
    fields |= {"labels": "choices.label", "answer": "answerKey"}
    found = read_choices(config(fields=fields, rows=2), [path]).rows
    assert [(row.id, row.answer) for row in found] == [("Mercury_1", "C"), ("NYSED_2", "B")]
    assert found[0].prompt == "Which is a metal?\nA. tin\nB. tea\nC. tar"


def test_mmlu_pro(read):
    row = {"question_id": 70, "q": "Which?", "o": list("abcdefghij"), "answer": "I"}
    row |= {"answer_index": 8, "category": "business"}
    template = "{prompt}\n\n{options}\n\nPut the letter in \\boxed{}."
    by_letter = {**FIELDS, "id": "question_id", "answer": "answer"}
    [found] = read(row, fields=by_letter, template=template)
    assert (found.id, found.answer) == ("70", "I")
    assert found.prompt.startswith("Which?\n\nA. a\nB. b\n")
    assert found.prompt.endswith("I. i\nJ. j\n\nPut the letter in \\boxed{}.")
    by_index = {**by_letter, "answer": "answer_index"}
    assert read(row, fields=by_index, template=template, answer="index") == [found]


GPQA = ["Record ID", "Question", "Correct Answer"]
GPQA += [f"Incorrect Answer {number}" for number in (1, 2, 3)]


def gpqa(path, rows):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["Pre-Revision Question", *GPQA])
        for number, question in rows:
            options = [f"{kind} of {number},\nsecond line" for kind in ("right", "x", "y", "z")]
            writer.writerow(["", f"rec{number}", question, *options])
    fields = {"id": GPQA[0], "prompt": GPQA[1], "options": GPQA[2:]}
    settings = config(fields=fields, answer="first", shuffle=0, rows=len(rows))
    return {row.id: row for row in read_choices(settings, [path]).rows}


def test_gpqa(tmp_path):
    rows = [(number, f'Question "{number}", please?') for number in range(40)]
    found = gpqa(tmp_path / "gpqa_diamond.csv", rows)
    for name, row in found.items():
        lines = row.prompt.split("\n")
        # An option is one line.
        assert f"{row.answer}. right of {name.removeprefix('rec')}, second line" in lines
    # Each place is taken, and by about as many: 10 +- 4 of 40.
    answers = [row.answer for row in found.values()]
    assert all(4 <= answers.count(letter) <= 18 for letter in "ABCD")
    # Neither the order of the rows nor other rows matter.
    again = gpqa(tmp_path / "again.csv", rows[:20:-1])
    assert all(
        (row.prompt, row.answer) == (found[name].prompt, found[name].answer)
        for name, row in again.items()
    )


def test_another_seed_is_another_order(read):
    rows = [{"q": f"Which of {n}?", "o": list("abcd"), "a": "B"} for n in range(20)]
    first, second = read(*rows, shuffle=0), read(*rows, shuffle=1)
    assert [row.prompt for row in first] != [row.prompt for row in second]
    assert all(f"\n{row.answer}. b" in row.prompt for row in first + second)


def test_braces_of_a_question_are_not_places(read):
    [row] = read({"q": "Is {options} {prompt}?", "o": ["{prompt}", "no"], "a": "A"})
    assert row.prompt == "Is {options} {prompt}?\nA. {prompt}\nB. no"


def test_a_gold_letter_is_right(read):
    # Every letter verifies against itself, as a response that ends as the prompt asks.
    rows = [{"q": "?", "o": list("abcdefghij"), "a": n} for n in range(10)]
    found = read(*rows, answer="index")
    assert [row.answer for row in found] == list("ABCDEFGHIJ")
    for row in found:
        assert choice_letter(f"It is \\boxed{{{row.answer}}}.") == row.answer


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"q": "?", "o": ["a", "b"]}, "field 'a' is missing"),
        ({"q": "?", "a": "A"}, "field 'o' is missing"),
        ({"q": "?", "o": "a", "a": "A"}, "the options are not a list of texts"),
        ({"q": "?", "o": ["a", 2], "a": "A"}, "the options are not a list of texts"),
        ({"q": "?", "o": ["a"], "a": "A"}, "there are 1 options, not 2 to 10"),
        ({"q": "?", "o": list("abcdefghijk"), "a": "A"}, "there are 11 options, not 2 to 10"),
        ({"q": "?", "o": ["a", " "], "a": "A"}, "an option is empty"),
        ({"q": "?", "o": ["a", "\ud800"], "a": "A"}, "surrogates not allowed"),
        ({"q": " ", "o": ["a", "b"], "a": "A"}, "the prompt is empty"),
        ({"q": "?", "o": ["a", "b"], "a": "C"}, "the answer 'C' is none of the labels A, B"),
        ({"q": "?", "o": ["a", "b"], "a": "b"}, "the answer 'b' is none of the labels A, B"),
    ],
)
def test_a_bad_row(read, row, expected):
    with pytest.raises(UserError) as error:
        read({"q": "!", "o": ["a", "b"], "a": "A"}, row)
    assert "rows.jsonl:2: " in str(error.value)
    assert expected in str(error.value)


@pytest.mark.parametrize(
    ("row", "changes", "expected"),
    [
        ({"a": 2}, {"answer": "index"}, "the answer is option 2, from 0, and there are 2"),
        ({"a": -1}, {"answer": "index"}, "the answer -1 is not the number of an option"),
        ({"a": True}, {"answer": "index"}, "the answer True is not the number of an option"),
        ({"l": ["1"]}, {}, r"the labels ['1'] are not one for each of 2 options"),
        ({"l": ["1", "1"]}, {}, r"the labels ['1', '1'] are not one for each of 2 options"),
        ({"l": [1, 2], "a": 3}, {}, "the answer 3 is none of the labels 1, 2"),
        ({"l": [1, 0], "a": True}, {}, "the answer True is none of the labels 1, 0"),
        ({"l": [[1], [2]]}, {}, "the labels [[1], [2]] are not one for each of 2 options"),
        ({"l": [True, "2"]}, {}, "the labels [True, '2'] are not one for each of 2 options"),
        ({"l": ["1", "2"]}, {"rows": 2}, "1 rows, but rows is 2"),
        (
            {"o": ["a\nb", "c", "a b"], "a": "C"},
            {"shuffle": 0},
            "the right option 'a b' stands twice",
        ),
    ],
)
def test_a_bad_answer(read, row, changes, expected):
    fields = FIELDS | ({"labels": "l"} if "l" in row else {})
    with pytest.raises(UserError) as error:
        read({"q": "?", "o": ["a", "b"], "a": "1", **row}, fields=fields, **changes)
    assert expected in str(error.value)


def test_labels_that_are_integers(read):
    row = {"q": "?", "o": ["a", "b"], "l": [1, 2], "a": 2}
    assert read(row, fields=FIELDS | {"labels": "l"})[0].answer == "B"


def test_equal_options(read):
    # The letter that a file names stands, as it is published; and two wrong options may be equal.
    assert read({"q": "?", "o": ["a", "a"], "a": "B"})[0].answer == "B"
    assert len(read({"q": "?", "o": ["a", "a", "b"], "a": "C"}, shuffle=0)) == 1


def test_an_id_that_stands_twice(read):
    row = {"q": "?", "o": ["a", "b"], "a": "A", "n": 1}
    with pytest.raises(UserError, match=r"rows.jsonl:2: id '1' stands in .*rows.jsonl:1 too"):
        read(row, row, fields={**FIELDS, "id": "n"})
