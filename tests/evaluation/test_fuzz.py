"""Any file of responses is either read or refused in a message that names it."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from respo.cli import UserError
from respo.evaluation.formats import FOREIGN_COLUMNS
from respo.evaluation.generations import COLUMNS, Generation, Generations
from respo.evaluation.verifiers import VERIFIERS, Options, gold_for

FUZZ = int(os.environ.get("RESPO_FUZZ", "1"))  # times as many examples
fuzz = settings(
    max_examples=150 * FUZZ,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(2**80), 2**80)
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["\ud800", "B", "(c).", "3", "\\boxed{3}"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=5,
)
FOREIGN = (
    "doc_id",
    "target",
    "resps",
    "filter",
    "metrics",
    "acc",
    "score",
    "input",
    "output",
    "gts",
)
NAMES = st.sampled_from([*COLUMNS, *FOREIGN_COLUMNS, *FOREIGN, "other"])
GOOD = st.fixed_dictionaries(
    {"problem_id": st.sampled_from("ab"), "answer": st.just("B"), "response": st.text(max_size=5)}
)
ROWS = st.dictionaries(NAMES, VALUES, max_size=6) | GOOD | VALUES
ROWS |= st.builds(lambda good, more: good | more, GOOD, st.dictionaries(NAMES, VALUES, max_size=2))
TEXTS, WHOLE = st.text(st.characters(exclude_categories=["Cs"]), max_size=5), st.integers(0, 99)
# Values by the type of their column.
COLUMN_TYPES: list[tuple[pa.DataType, st.SearchStrategy]] = [
    *((kind, TEXTS) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    (pa.dictionary(pa.int8(), pa.string()), TEXTS),
    *((kind, st.binary(max_size=5)) for kind in (pa.binary(), pa.large_binary())),
    *((kind, WHOLE) for kind in (pa.int8(), pa.int32(), pa.int64(), pa.uint64(), pa.float16())),
    *((kind, WHOLE) for kind in (pa.timestamp("ns"), pa.duration("s"), pa.date32())),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.float64(), st.floats()),
    (pa.decimal128(5, 2), st.decimals(0, 99, places=2)),
    (pa.bool_(), st.booleans()),
    (pa.null(), st.none()),
    (pa.list_(pa.string()), st.lists(st.none() | TEXTS, max_size=3)),
    (pa.list_(pa.int32()), st.lists(st.none() | WHOLE, max_size=3)),
    (pa.list_(pa.bool_()), st.lists(st.none() | st.booleans(), max_size=3)),
    (pa.list_(pa.list_(pa.string())), st.lists(st.lists(TEXTS, max_size=2), max_size=2)),
    (pa.struct([("ground_truth", pa.string())]), st.fixed_dictionaries({"ground_truth": TEXTS})),
    (pa.map_(pa.string(), pa.string()), st.lists(st.tuples(TEXTS, TEXTS), max_size=2)),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


def read(path: Path, verifier: str = "math_verify") -> list[Generation]:
    """Return the responses, or none if they are refused with the file's name."""
    gold = None if verifier == "code" else gold_for(verifier, Options())
    try:
        found = list(Generations(path, gold))
    except UserError as error:
        refusal = str(error)
    else:
        for generation in found:
            assert isinstance(generation.answer + generation.response, str)
            (generation.problem_id + generation.answer + generation.response).encode()
            assert 0 <= generation.sample < 2**31
        return found
    assert str(path) in refusal
    return []


@given(st.lists(ROWS, max_size=4), st.sampled_from(sorted(VERIFIERS)))
@fuzz
def test_json_lines(folder, rows, verifier):
    path = folder / "g.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    read(path, verifier)


@given(
    st.binary(max_size=40) | st.text(max_size=40).map(str.encode),
    st.sampled_from(["jsonl", "parquet"]),
)
@fuzz
def test_any_bytes(folder, content, suffix):
    path = folder / f"any.{suffix}"
    path.write_bytes(content)
    read(path)


@given(st.data())
@fuzz
def test_columns_of_any_type(folder, data):
    """Random values of random types; a real file has such columns where it has others than ours."""
    names = data.draw(st.lists(NAMES, unique=True, max_size=5))
    size = data.draw(st.integers(0, 3))
    columns = {}
    for name in names:
        kind, values = data.draw(st.sampled_from(COLUMN_TYPES))
        columns[name] = pa.array([data.draw(st.none() | values) for _ in range(size)], kind)
    path = folder / "columns.parquet"
    pq.write_table(pa.table(columns), path)
    read(path)


@pytest.fixture(scope="module")
def whole(folder):
    path = folder / "whole.parquet"
    rows = 200
    columns = {
        "problem_id": [str(row // 4) for row in range(rows)],
        "sample": pa.array([row % 4 for row in range(rows)], pa.int32()),
        "answer": ["3"] * rows,
        "response": [f"\\boxed{{{row}}}" * 5 for row in range(rows)],
    }
    pq.write_table(pa.table(columns), path, write_page_checksum=True)
    return path.read_bytes()


@given(st.data())
@fuzz
def test_damaged_files(folder, whole, data):
    """Some bytes are others, or the end is missing."""
    content = bytearray(whole)
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path = folder / "damaged.parquet"
    path.write_bytes(content[: data.draw(st.none() | st.integers(0, len(content)))])
    read(path)
