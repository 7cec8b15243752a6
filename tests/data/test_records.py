"""Records of files, and the place that an error names."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from respo.cli import UserError
from respo.data.records import BATCH_ROWS, Record, records
from respo.parquet import write_parquet

ROWS = [{"q": "1+1", "a": 2}, {"q": "1+2", "a": 3}]


@pytest.fixture
def write(tmp_path):
    def write(name, data):
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return write


def message(path, columns=("q", "a")):
    with pytest.raises(UserError) as error:
        list(records(path, columns))
    return str(error.value)


def test_json_lines(write):
    # U+2028 ends a line for str.splitlines, but not in JSON lines; an empty line is nothing.
    path = write("rows.jsonl", '{"q": "a\u2028b"}\r\n\n{"q": "c"}')
    assert list(records(path, ["q"])) == [
        Record(f"{path}:1", {"q": "a\u2028b"}),
        Record(f"{path}:3", {"q": "c"}),
    ]


@pytest.mark.parametrize("text", [json.dumps(ROWS), json.dumps(ROWS, indent=2)])
def test_a_json_list(write, text):
    path = write("rows.json", text)
    assert [r.values for r in records(path, ["q"])] == ROWS
    assert [r.place for r in records(path, ["q"])] == [f"{path}: row 1", f"{path}: row 2"]


def test_json_lines_by_another_name(write):
    path = write("rows.json", "".join(json.dumps(row) + "\n" for row in ROWS))
    assert [r.values for r in records(path, ["q"])] == ROWS


def test_parquet_in_batches_and_named_columns_only(tmp_path):
    path = tmp_path / "rows.parquet"
    count = BATCH_ROWS + 2
    table = pa.table({"q": list(map(str, range(count))), "x": [0] * count})
    pq.write_table(table, path)
    found = list(records(path, ["q"]))
    assert found[0] == Record(f"{path}: row 1", {"q": "0"})
    assert found[-1] == Record(f"{path}: row {count}", {"q": str(count - 1)})


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("r.jsonl", b'\xef\xbb\xbf{"q": 1}', ":1: begins with a byte-order mark; save the file as"),
        ("r.json", b'\xef\xbb\xbf[{"q": 1}]', ":1: begins with a byte-order mark"),
        ("r.jsonl", '{"q": 1}\n{"q": \n', ":2: not valid JSON (Expecting value); mend the line"),
        ("r.jsonl", '{"q": 1}\n[1]\n', ":2: is [1], not an object with fields"),
        ("r.jsonl", '{"q": NaN}', ":1: not valid JSON (NaN is not a value)"),
        ("r.jsonl", b'{"q": 1}\n{"q": "\xff"}\n', ":2: not UTF-8 text"),
        ("r.json", '[\n{"q": 1},\n{"q" 2}\n]', ":3: not valid JSON (Expecting ':' delimiter)"),
        ("r.json", b'[\n{"q": "\xff"}\n]', ":2: not UTF-8 text"),
        ("r.json", '[{"q": 1}, "x"]', ": row 2: is 'x', not an object with fields"),
        ("r.jsonl", "[" * 100_000, ":1: not valid JSON (maximum recursion depth"),
        ("r.parquet", "PAR1", ": not a readable Parquet file"),
        ("r.txt", "q,a", ": name a file that ends in .parquet, .jsonl, .json or .csv"),
        ("r.csv", "q,b\n1,2\n", ":1: column 'a' is missing; there are q, b; change fields"),
        ("r.csv", "", ":1: column 'a' is missing; there are "),
        ("r.csv", "q,a,a\n1,2,3\n", ":1: a column stands twice; rename one of them"),
        ("r.csv", "q,a\n1,2\n3\n", ":3: 1 fields, but 2 columns; mend the line"),
        ("r.csv", 'q,a\n1,"2"3\n', ":2: not valid CSV ("),
        ("r.csv", 'q,a\n1,"2\n3\n', ":3: not valid CSV (unexpected end of data)"),
        ("r.csv", b"\xef\xbb\xbfq,a\n1,2\n", ":1: begins with a byte-order mark"),
        ("r.csv", b"q,a\n1,\xff\n", ":1: not UTF-8 text"),
    ],
)
def test_a_bad_file(write, name, data, expected):
    path = write(name, data)
    assert message(path).startswith(f"{path}{expected}")


def test_damaged_pages(tmp_path):
    path = tmp_path / "rows.parquet"
    table = pa.table({"q": [f"question {n} {n * n}" for n in range(3000)]})
    pq.write_table(table, path, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[4:2000] = b"\xff" * 1996
    path.write_bytes(data)
    assert message(path, ["q"]).startswith(f"{path}: not a readable Parquet file (")


def test_a_changed_footer_of_a_file_of_ours(tmp_path):
    path = tmp_path / "rows.parquet"
    write_parquet(path, pa.table({"q": ["1"], "a": ["2"]}), {})
    assert len(list(records(path, ["q", "a"]))) == 1
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    assert message(path).startswith(f"{path}: not a readable Parquet file (its footer was changed")


def test_rows_that_are_lost(tmp_path):
    """Some flips of the footer or of a page's head let a file end before its last row."""
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"q": [f"question {n % 7}" for n in range(200)]}), path)
    column = pq.read_metadata(path).row_group(0).column(0)
    whole = path.read_bytes()
    lost = 0
    for position in range(8 * column.data_page_offset, 8 * (column.data_page_offset + 40)):
        damaged = bytearray(whole)
        damaged[position // 8] ^= 1 << position % 8
        path.write_bytes(damaged)
        try:
            assert len(list(records(path, ["q"]))) == 200
        except UserError as error:
            lost += "rows are there, 200 were written" in str(error)
    assert lost > 0


def test_a_long_field_of_csv(write):
    path = write("rows.csv", 'q,a\n"' + "x" * 200_000 + '",1\n')
    assert len(next(iter(records(path, ["q"]))).values["q"]) == 200_000


@pytest.mark.parametrize("name", ["no.jsonl", "no.json", "no.parquet", "no.csv"])
def test_no_file(tmp_path, name):
    assert message(tmp_path / name) == f"{tmp_path / name}: no such file"


def test_a_column_that_is_missing(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"q": ["1"], "b": ["2"]}), path)
    assert message(path) == f"{path}: column 'a' is missing; there are q, b; change fields"
