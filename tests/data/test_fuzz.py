"""Any published file is either read or refused in a message that names it."""

import base64
import json
import os
import pickle
import zlib
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from respo.cli import UserError
from respo.config.schema import Choices, Programs, Rows
from respo.data.choices import read_choices
from respo.data.packed import unpack
from respo.data.programs import ProgramReading
from respo.data.records import records
from respo.data.rows import read_rows
from respo.rewards.code.problem import read_problem

FUZZ = int(os.environ.get("RESPO_FUZZ", "1"))  # times as many examples
fuzz = settings(
    max_examples=100 * FUZZ,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["\ud800", "", " ", "\\boxed{3}", "[]", "{}", "[1]", "9" * 5000, "[" * 3000])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["input", "output", "testtype", "type", "fn_name", "inputs", "role"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
CASE = {"input": "1\n", "output": "2\n", "testtype": "stdin"}
CALL = {"input": "[1]", "output": "2", "testtype": "functional"}
PROBLEMS = {
    "livecodebench": {
        "question_id": "a",
        "question_content": "q",
        "contest_date": "2024-09-01T00:00:00",
        "starter_code": "",
        "public_test_cases": json.dumps([CASE]),
        "private_test_cases": base64.b64encode(zlib.compress(pickle.dumps("[]"))).decode(),
        "metadata": '{"func_name": "f"}',
    },
    "deepcoder": {"problem": "q", "tests": json.dumps([CASE]), "starter_code": "", "metadata": {}},
}
ROW = {"q": "1+1", "a": "2", "n": "x", "o": ["1", "2"], "l": "A"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


def changed(row):
    """Rows with other values under some keys, some of them as JSON."""
    values = VALUES | VALUES.map(json.dumps) | st.sampled_from([json.dumps([CALL]), [CALL], [CASE]])
    return st.dictionaries(st.sampled_from(sorted(row)), values, max_size=3).map(
        lambda more: row | more
    )


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def refused(read, path):
    """Tell whether a file is refused; then its name is told."""
    try:
        read()
    except UserError as error:
        refusal = str(error)
    else:
        return False
    assert str(path) in refusal
    return True


@given(
    st.binary(max_size=40) | st.text(max_size=40).map(lambda t: t.encode("utf-8", "replace")),
    st.sampled_from(["json", "jsonl", "csv", "parquet", "txt"]),
)
@fuzz
def test_any_bytes(folder, content, suffix):
    path = folder / f"any.{suffix}"
    path.write_bytes(content)
    refused(lambda: list(records(path, ["q"])), path)


@given(st.data())
@fuzz
def test_programs(folder, data):
    """What is read is what the verifier takes."""
    form = data.draw(st.sampled_from(sorted(PROBLEMS)))
    path = lines(folder / "p.jsonl", data.draw(st.lists(changed(PROBLEMS[form]), max_size=2)))
    drop = data.draw(st.booleans())
    config = Programs.model_validate(
        {"source": "programs", "form": form, "path": "x", "drop_unanswered": drop}
    )

    def read():
        for row in ProgramReading(config, [path]):
            assert read_problem(row["tests"]).cases

    refused(read, path)


@given(st.data())
@fuzz
def test_rows_and_choices(folder, data):
    path = lines(folder / "r.jsonl", data.draw(st.lists(changed(ROW), max_size=3)))
    fields = {"prompt": "q", "answer": "a", "id": "n"}
    form = data.draw(st.sampled_from(["text", "integer", "boxed", "list"]))
    rows = Rows.model_validate({"source": "rows", "path": "x", "fields": fields, "answer": form})
    refused(lambda: read_rows(rows, [path]).table(), path)
    choices = Choices.model_validate(
        {
            "source": "choices",
            "path": "x",
            "fields": {"prompt": "q", "options": ["o"], "answer": "l", "id": "n"},
            "answer": "label",
        }
    )
    refused(lambda: read_choices(choices, [path]).table(), path)


@given(st.data())
@fuzz
def test_columns_of_any_type(folder, data):
    """Of a Parquet file, with values that JSON has not."""
    values = [b"\xff", 3, 0, "x", True, [b"x"], None, Decimal("1.5"), 1.5, datetime(2025, 1, 1)]
    values += [date(2025, 1, 1), timedelta(1), {"a": 1}, [[1]]]
    row = PROBLEMS["livecodebench"]
    columns = {name: pa.array([value]) for name, value in row.items()}
    for name in data.draw(st.lists(st.sampled_from(sorted(row)), max_size=3)):
        columns[name] = pa.array([data.draw(st.sampled_from(values))])
    path = folder / "c.parquet"
    pq.write_table(pa.table(columns), path)
    config = Programs.model_validate({"source": "programs", "form": "livecodebench", "path": "x"})
    refused(lambda: list(ProgramReading(config, [path])), path)


@given(
    st.binary(max_size=60).map(lambda data: base64.b64encode(zlib.compress(data)).decode())
    | st.text(max_size=30)
    | VALUES.map(lambda value: base64.b64encode(zlib.compress(pickle.dumps(value))).decode())
)
@fuzz
def test_packed_texts(packed):
    """Text, or an error; nothing is loaded."""
    with suppress(ValueError):
        assert isinstance(unpack(packed, 10_000), str)
