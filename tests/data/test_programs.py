"""Problems to be programmed, in the forms in which LiveCodeBench and DeepCoder are published."""

import base64
import hashlib
import json
import pickle
import zlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from respo.cli import UserError
from respo.config.schema import Programs
from respo.data.programs import ProgramReading
from respo.rewards.code.problem import read_problem


def config(form, **changes):
    return Programs.model_validate({"source": "programs", "form": form, "path": "x", **changes})


@pytest.fixture
def read(tmp_path):
    """Read rows as JSON lines; the rows found, and the reading."""

    def read(form, *rows, **changes):
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        reading = ProgramReading(config(form, **changes), [path])
        return list(reading), reading

    return read


def case(given, wanted, kind="stdin"):
    return {"input": given, "output": wanted, "testtype": kind}


def lcb(name="1873_A", day="2024-09-01T00:00:00", packed=True, **changes):
    private = json.dumps([case("2\n", "4\n"), case("3\n", "6\n")])
    if packed:
        pickled = pickle.dumps(private)
        private = base64.b64encode(zlib.compress(pickled)).decode()
    return {
        "question_title": "Twice",
        "question_content": "Print twice the number.\n",
        "platform": "atcoder",
        "question_id": name,
        "contest_id": "1873",
        "contest_date": day,
        "starter_code": "",
        "difficulty": "easy",
        "public_test_cases": json.dumps([case("1\n", "2\n")]),
        "private_test_cases": private,
        "metadata": "{}",
        **changes,
    }


@pytest.mark.parametrize("packed", [True, False])
def test_livecodebench(read, packed):
    [row], _ = read("livecodebench", lcb(packed=packed), template="Solve.\n{prompt}\nIn Python.")
    assert row["id"] == "1873_A"
    assert row["prompt"] == "Solve.\nPrint twice the number.\nIn Python."
    assert json.loads(row["tests"]) == {
        "function": None,
        "tests": [{"input": f"{n}\n", "output": f"{2 * n}\n"} for n in (1, 2, 3)],
    }
    assert row["answer"] == hashlib.sha256(row["tests"].encode()).hexdigest()
    # The verifier reads them.
    assert [test.input for test in read_problem(row["tests"]).cases] == ["1\n", "2\n", "3\n"]


def functional(**changes):
    return lcb(
        public_test_cases=json.dumps([case('[1, 2]\n"a"', "3", "functional")]),
        private_test_cases="[]",
        starter_code="class Solution:\n    def twice(self, numbers, name):\n        ",
        metadata='{"func_name": "twice"}',
        **changes,
    )


def test_livecodebench_functions(read):
    template = "{prompt}\n```python\n{starter_code}\n```"
    [row], _ = read("livecodebench", functional(), starter_template=template)
    assert row["prompt"] == (
        "Print twice the number.\n```python\nclass Solution:\n    def twice(self, numbers, name):\n"
        "        \n```"
    )
    assert read_problem(row["tests"]).function == "twice"


@pytest.mark.parametrize(
    ("start", "end", "names"),
    [
        # As LiveCodeBench's own options: both ends are the midnight that begins the day.
        ("2024-08-01", "2024-08-03", "bcd"),
        ("2024-08-01", None, "bcdef"),
        (None, "2024-08-02", "abc"),
        (None, None, "abcdef"),
    ],
)
def test_the_window(read, start, end, names):
    days = ["2024-07-31T23:59:59", "2024-08-01T00:00:00", "2024-08-01T18:30:00"]
    days += ["2024-08-03T00:00:00", "2024-08-03T18:30:00", "2024-08-04T00:00:00+00:00"]
    rows = [lcb(name, day) for name, day in zip("abcdef", days, strict=True)]
    window = {"start_date": start, "end_date": end, "rows": len(names)}
    found, reading = read("livecodebench", *rows, **window)
    assert "".join(row["id"] for row in found) == names
    left_out = f"{6 - len(names)} problems outside the window of dates left out"
    assert reading.summary() == [f"6 problems read, {len(names)} kept"] + [left_out] * (
        len(names) < 6
    )
    with pytest.raises(UserError, match=f"{len(names)} rows, but rows is 9"):
        read("livecodebench", *rows, **{**window, "rows": 9})


DEEPCODER = {
    "codeforces": ([{"input": "1\n", "output": "2\n"}], None, "1\n", "2\n"),
    "primeintellect": ([{"type": "stdin_stdout", "input": "1", "output": "2"}], None, "1", "2"),
    "taco": ({"inputs": ["1\n"], "outputs": ["2\n"]}, None, "1\n", "2\n"),
    "taco, lines in lists": ({"inputs": [["1", "2"]], "outputs": [["3"]]}, None, "1\n2", "3"),
    "primeintellect, a function": (
        [{"type": "function_call", "fn_name": "f", "input": [1, "a"], "output": [[2]]}],
        "f",
        '1\n"a"',
        "[2]",
    ),
    "taco, a function": (
        {"fn_name": "f", "inputs": [[{"a": 1}]], "outputs": [[True]]},
        "f",
        '{"a": 1}',
        "true",
    ),
}


@pytest.mark.parametrize(
    ("tests", "function", "given", "wanted"), DEEPCODER.values(), ids=DEEPCODER.keys()
)
def test_deepcoder(read, tests, function, given, wanted):
    row = {"problem": " Add. ", "tests": json.dumps(tests), "solutions": ["print(1)"]}
    [found], _ = read("deepcoder", row)
    problem = read_problem(found["tests"])
    assert (problem.function, *problem.cases[0]) == (function, given, wanted)
    head = {None: "", "f": "\ndef f(argument_1):\n    ..."}[function]
    if given.startswith("1\n") and function:
        head = "\ndef f(argument_1, argument_2):\n    ..."
    assert (found["id"], found["prompt"]) == ("row-00000", "Add." + head)


def test_deepcoder_of_livecodebench(tmp_path):
    tests = [case("[1]", "1", "functional")]
    row = {"problem": "First.", "tests": json.dumps(tests), "starter_code": "class Solution: ..."}
    path = tmp_path / "train.parquet"
    pq.write_table(pa.Table.from_pylist([{**row, "metadata": {"func_name": "first"}}]), path)
    other = tmp_path / "other.parquet"
    plain = {"problem": "Add.", "tests": json.dumps({"inputs": ["1"], "outputs": ["2"]})}
    pq.write_table(pa.Table.from_pylist([plain] * 20), other)
    found = list(ProgramReading(config("deepcoder", rows=21), [path, other]))
    assert found[0]["prompt"] == "First.\nclass Solution: ..."
    assert read_problem(found[0]["tests"]).function == "first"
    assert [row["id"] for row in found[-2:]] == ["row-00019", "row-00020"]


def test_a_list_of_one_is_taken_off_only_where_all_have_it(read):
    tests = {"fn_name": "f", "inputs": [[1], [2]], "outputs": [[1], [1, 2]]}
    [row], _ = read("deepcoder", {"problem": "p", "tests": json.dumps(tests)})
    assert [test.output for test in read_problem(row["tests"]).cases] == ["[1]", "[1, 2]"]


def test_the_longest_tests_that_fit_in(read):
    inputs = ["1", "333", "22", "55555", "4444"]
    tests = {"inputs": inputs, "outputs": [""] * 5}

    def kept(**limits):
        [row], _ = read("deepcoder", {"problem": "p", "tests": json.dumps(tests)}, **limits)
        return [test.input for test in read_problem(row["tests"]).cases]

    assert kept() == inputs
    assert kept(max_tests=2) == ["55555", "4444"]
    assert kept(max_test_bytes=4) == ["4444"]
    assert kept(max_test_bytes=10) == ["1", "55555", "4444"]
    assert kept(max_test_bytes=10, max_tests=2) == ["55555", "4444"]
    tests["inputs"] = ["22"] * 5
    with pytest.raises(UserError, match=r"rows.jsonl:1: there is no test that fits into max_test_"):
        kept(max_test_bytes=1)


@pytest.mark.parametrize(
    ("tests", "expected"),
    [
        ([], "there are no tests"),
        ({}, "the tests are an object without inputs and outputs"),
        ({"inputs": ["1"], "outputs": []}, "there are 1 inputs and 0 outputs"),
        ([{"input": "1"}], "a test has no input or output"),
        ([{"input": "1", "output": None}], "input or output of a test is not a text"),
        ([{"input": 1, "output": "1"}], "input or output of a test is not a text"),
        ([{"input": "\ud800", "output": "1"}], "input or output of a test is not a text"),
        (
            [case("1", "1"), {"input": [1], "output": [1], "fn_name": "f"}],
            "some tests are of a function, and others of standard input",
        ),
        ([case("1", "1", "functional")], "the tests are of a function without one name"),
        ({"fn_name": "f", "inputs": [1], "outputs": [1]}, "the arguments of a function are not a"),
        ({"fn_name": "f", "inputs": [[]], "outputs": [1]}, "a test of the function f is not JSON"),
        ({"fn_name": "f g", "inputs": [[1]], "outputs": [1]}, "the function's name is 'f g'"),
    ],
)
def test_problems_without_usable_tests(read, tests, expected):
    good = {"problem": "p", "tests": json.dumps([{"input": "1", "output": "1"}])}
    bad = {"problem": "p", "tests": json.dumps(tests)}
    with pytest.raises(UserError) as error:
        read("deepcoder", good, bad)
    assert f"rows.jsonl:2: {expected}" in str(error.value)
    assert str(error.value).endswith("mend the row or set drop_unanswered")
    found, reading = read("deepcoder", good, bad, drop_unanswered=True, rows=2)
    assert len(found) == 1
    assert reading.summary() == [
        "2 problems read, 1 kept",
        "1 problems without usable tests left out",
    ]


def test_a_date_with_a_zone_is_taken_in_utc(read):
    # 08:30 of the first in Tokyo is half an hour before midnight in London.
    window = {"start_date": "2024-09-01"}
    rows = [lcb("early", "2024-09-01T08:30:00+09:00"), lcb("late", "2024-09-01T09:00:00+09:00")]
    found, _ = read("livecodebench", *rows, **window)
    assert [row["id"] for row in found] == ["late"]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"public_test_cases": None}, "field 'public_test_cases' is null"),
        ({"public_test_cases": "{"}, "the public_test_cases are not valid JSON"),
        ({"public_test_cases": "{}"}, "public_test_cases are not a list of objects"),
        ({"private_test_cases": "???"}, "private_test_cases: neither JSON nor base64 of zlib"),
        ({"contest_date": "soon"}, "contest_date is 'soon', not a date"),
        ({"question_content": " "}, "the prompt is empty"),
        ({"question_id": None}, "field 'question_id' is null"),
        ({"public_test_cases": json.dumps([case("", "", "x")])}, "testtype is ['stdin', 'x']"),
        ({"public_test_cases": json.dumps([case("1", "1", "functional")])}, "testtype is ['func"),
        (
            {"public_test_cases": json.dumps([case("1", "1", ["stdin"])])},
            "testtype is [\"['stdin']",
        ),
    ],
)
def test_a_bad_row_of_livecodebench(read, row, expected):
    with pytest.raises(UserError) as error:
        read("livecodebench", lcb("0"), lcb(**row))
    assert f"rows.jsonl:2: {expected}" in str(error.value)


def test_a_function_without_a_name(read):
    with pytest.raises(UserError, match=r"rows.jsonl:1: the metadata name no function \(func_name"):
        read("livecodebench", {**functional(), "metadata": "{}"})


def test_an_id_that_stands_twice(read):
    with pytest.raises(UserError, match=r"rows.jsonl:2: id '1873_A' stands in .*rows.jsonl:1 too"):
        read("livecodebench", lcb(), lcb())


def test_integers_of_any_number_of_digits(read):
    """Python's own limit is 4,300."""
    tests = [case("9" * 5000, "1" + "0" * 5000, "functional")]
    [found], _ = read("livecodebench", functional() | {"private_test_cases": json.dumps(tests)})
    assert json.loads(found["tests"])["tests"][1]["output"] == "1" + "0" * 5000


def test_starter_code_that_is_no_text_is_none(read):
    rows = {"problem": "q", "tests": [case("1", "2")], "starter_code": [None]}
    [found], _ = read("deepcoder", rows)
    assert found["prompt"] == "q"
