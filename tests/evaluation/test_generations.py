"""Reading generations: every accepted form, and every named kind of bad input."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from respo.cli import UserError
from respo.evaluation.generations import Generation, Generations
from respo.parquet import write_parquet

ROW = {"problem_id": "p", "answer": "3", "response": "r"}


def jsonl(folder: Path, *rows: object) -> Path:
    path = folder / "g.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_own_file(tmp_path: Path) -> None:
    columns = {
        "problem_id": ["a", "a", "b"],
        "sample": pa.array([0, 1, 0], pa.int32()),
        "prompt": ["1+1=", "1+1=", "2+1="],
        "answer": ["2", "2", "3"],
        "response": ["x", "", "z"],
        "response_tokens": pa.array([4, 0, 5], pa.int32()),
        "truncated": [False, False, True],
    }
    path = tmp_path / "generations.parquet"
    write_parquet(path, pa.table(columns), {"checkpoint": "abc"})
    generations = Generations(path)
    assert list(generations) == [
        Generation("a", 0, "2", "x", 4, False),
        Generation("a", 1, "2", "", 0, False),
        Generation("b", 0, "3", "z", 5, True),
    ]
    assert generations.made_from == {"checkpoint": "abc"}


def test_one_row_per_problem(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path,
        {"problem": "first?", "answer": 7, "responses": ["a", "b"], "other": 1},
        {"problem": "second?", "answer": "8", "responses": ["c"]},
        {"problem": "first?", "answer": "7", "responses": ["d"]},
    )
    generations = Generations(path)
    assert [(g.problem_id, g.sample, g.answer, g.response) for g in generations] == [
        ("0", 0, "7", "a"),
        ("0", 1, "7", "b"),
        ("1", 0, "8", "c"),
        ("0", 2, "7", "d"),
    ]
    assert generations.made_from == {}
    assert {(g.response_tokens, g.truncated) for g in generations} == {(None, None)}


def test_one_row_per_problem_with_lengths_as_parquet(tmp_path: Path) -> None:
    row = {"id": 60, "answer": "7", "responses": ["a", "b"]}
    row |= {"response_tokens": [1, 2], "truncated": [False, True]}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "g.parquet")
    assert list(Generations(tmp_path / "g.parquet")) == [
        Generation("60", 0, "7", "a", 1, False),
        Generation("60", 1, "7", "b", 2, True),
    ]


def test_samples_are_numbered_in_order(tmp_path: Path) -> None:
    path = jsonl(tmp_path, *({"prompt": p, "answer": "1", "response": p} for p in "abab"))
    assert [(g.problem_id, g.sample) for g in Generations(path)] == [
        ("0", 0),
        ("1", 0),
        ("0", 1),
        ("1", 1),
    ]


def test_blank_lines_are_nothing(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    path.write_bytes(b"\n" + GOOD + b"\n \n\r\n" + GOOD + b"\n\n")
    assert [(g.problem_id, g.sample) for g in Generations(path)] == [("p", 0), ("p", 1)]


def test_odd_characters(tmp_path: Path) -> None:
    """A line separator inside a text ends no line; half a surrogate pair becomes a ?."""
    path = tmp_path / "g.jsonl"
    text = json.dumps(ROW | {"response": "a\u2028b\x00"}, ensure_ascii=False)
    half = json.dumps(ROW | {"response": "\ud800"})
    path.write_bytes(text.encode() + b"\r\n" + half.encode())
    assert [g.response for g in Generations(path)] == ["a\u2028b\x00", "?"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "holds no responses"),
        ([{**ROW, "response": None}], "line 1: column 'response' is empty"),
        ([ROW, {**ROW, "answer": None}], "line 2: column 'answer' is empty"),
        ([ROW, {**ROW, "answer": ""}], "line 2: column 'answer' is empty"),
        ([ROW, {"problem_id": "p", "response": "r"}], "line 2: column 'answer' is missing"),
        ([{**ROW, "answer": 3.5}], "line 1: column 'answer' must hold text, not 3.5"),
        ([{**ROW, "answer": True}], "line 1: column 'answer' must hold text, not True"),
        ([{**ROW, "response": ["r"]}], r"line 1: column 'response' must hold text, not \['r'\]"),
        ([{**ROW, "problem_id": None}], "line 1: column 'problem_id' is empty"),
        ([{"answer": "3", "response": "r"}], "'problem_id' .* is missing; there are answer, resp"),
        ([{}], "is missing; there are none"),
        ([{"id": "p", "answer": "3"}], "either a column 'response' or a column 'responses'"),
        ([{**ROW, "responses": ["r"]}], "either a column 'response' or a column 'responses'"),
        ([{"id": "p", "answer": "3", "responses": []}], "column 'responses' is empty"),
        ([{"id": "p", "answer": "3", "responses": "r"}], "'responses' must hold a list, not 'r'"),
        ([{"id": "p", "answer": "3", "responses": ["r", 1]}], "response 2: .* must hold text"),
        (
            [{"id": "p", "answer": "3", "responses": ["r"], "truncated": [True, False]}],
            "'truncated' has 2 entries for 1 responses",
        ),
        ([{**ROW, "sample": "0"}], "'sample' must hold whole numbers, not '0'"),
        ([{**ROW, "sample": -1}], "'sample' must lie between 0"),
        ([{**ROW, "response_tokens": 2**31}], "'response_tokens' must lie between 0"),
        ([{**ROW, "truncated": 1}], "'truncated' must hold true or false, not 1"),
        ([{**ROW, "sample": 1}] * 2, "line 2: sample 1 of problem 'p' stands twice"),
        (
            [{**ROW, "sample": 1}, ROW],
            "line 2: column 'sample' is empty, but not in the rows before; number all",
        ),
        ([ROW, {**ROW, "sample": 0}], "line 2: column 'sample' is filled, but not in the rows"),
        ([ROW, {**ROW, "sample": 1}], "line 2: column 'sample' is filled, but not in the rows"),
        ([ROW, {**ROW, "answer": "4"}], "line 2: answer '4' contradicts an earlier row"),
        ([ROW, [ROW]], "line 2 is not a JSON object"),
        (
            [ROW, {**ROW, "problem_id": "\ud800"}],
            r"line 2: column 'problem_id' holds half of a surrogate pair, '\\ud800'; mend",
        ),
        ([{**ROW, "answer": "\ud800"}], "line 1: column 'answer' holds half of a surrogate"),
        (
            [{"problem": "\ud800", "answer": "3", "response": "r"}],
            "line 1: column 'problem' holds half of a surrogate",
        ),
    ],
)
def test_bad_rows(tmp_path: Path, rows: list, message: str) -> None:
    path = jsonl(tmp_path, *rows)
    with pytest.raises(UserError, match=message) as caught:
        list(Generations(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


GOOD = json.dumps(ROW).encode()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no responses"),
        (b"\xef\xbb\xbf" + GOOD, "line 1 begins with a byte-order mark"),
        (GOOD + b"\n{\n" + GOOD, "line 2 is not JSON"),
        (GOOD[:-4], "line 1 is not JSON"),
        (b"\xff\xfe{}", "line 1 is not JSON"),
        (b"[" * 100_000, "line 1 is not JSON"),
    ],
)
def test_bad_bytes(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "g.jsonl"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        list(Generations(path))
    assert str(path) in str(caught.value)


def test_bad_files(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"g\.jsonl: no such file"):
        list(Generations(tmp_path / "g.jsonl"))
    with pytest.raises(UserError, match=r"g\.parquet: no such file"):
        list(Generations(tmp_path / "g.parquet"))
    with pytest.raises(UserError, match=r"g\.csv: the name must end in \.parquet or \.jsonl"):
        list(Generations(tmp_path / "g.csv"))
    (tmp_path / "g.parquet").write_text("no Parquet")
    with pytest.raises(UserError, match=r"g\.parquet: not a readable Parquet file"):
        list(Generations(tmp_path / "g.parquet"))


def test_truncated_parquet(tmp_path: Path) -> None:
    path = tmp_path / "g.parquet"
    write_parquet(path, pa.Table.from_pylist([ROW]), {})
    whole = path.read_bytes()
    for length in range(0, len(whole), 50):
        path.write_bytes(whole[:length])
        with pytest.raises(
            UserError, match=r"g\.parquet: not a readable .*Delete it and start again\.$"
        ):
            list(Generations(path))


def test_bad_row_of_parquet_is_named(tmp_path: Path) -> None:
    path = tmp_path / "g.parquet"
    pq.write_table(pa.Table.from_pylist([ROW, {**ROW, "answer": None}]), path)
    with pytest.raises(UserError, match=r"g\.parquet: row 2: column 'answer' is empty"):
        list(Generations(path))


def test_can_be_read_again_and_in_any_order_of_samples(tmp_path: Path) -> None:
    path = jsonl(tmp_path, *({**ROW, "sample": sample} for sample in (2, 0, 5, 1, 3)))
    generations = Generations(path)
    assert [g.sample for g in generations] == [2, 0, 5, 1, 3]
    assert list(generations) == list(generations)
    for again in (0, 1, 2, 3, 5):
        path = jsonl(tmp_path, *({**ROW, "sample": n} for n in (2, 0, 5, 1, 3, again)))
        with pytest.raises(UserError, match=f"line 6: sample {again} of problem 'p' stands twice"):
            list(Generations(path))


def test_many_rows_of_parquet_are_numbered_through(tmp_path: Path) -> None:
    rows = [{**ROW, "sample": sample} for sample in range(200)]
    pq.write_table(pa.Table.from_pylist([*rows, rows[7]]), tmp_path / "g.parquet")
    with pytest.raises(UserError, match=r"row 201: sample 7 of problem 'p' stands twice"):
        list(Generations(tmp_path / "g.parquet"))
