"""Reading scores, and the command that prints what they say."""

import json
import random
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from respo import parquet
from respo.statistics.__main__ import main, summary
from respo.statistics.scores import read_scores

ROWS = [
    {"problem_id": "b", "sample": 0, "correct": True, "status": "ok"},
    {"problem_id": "a", "sample": 0, "correct": False, "status": "unparsed"},
    {"problem_id": "b", "sample": 1, "correct": False, "status": "timeout"},
    {"problem_id": "a", "sample": 1, "correct": False, "status": "ok"},
]


def write_jsonl(path: Path, rows: list) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def write_parquet(path: Path, rows: list[dict]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("write", [write_jsonl, write_parquet])
def test_counts(tmp_path: Path, write: Callable) -> None:
    path = write(tmp_path / ("s.jsonl" if write is write_jsonl else "s.parquet"), ROWS)
    scores = read_scores(path)
    assert scores.problem_id == ["b", "a"]
    assert scores.correct_P.tolist() == [1, 0]
    assert scores.samples_P.tolist() == [2, 2]
    assert scores.status == {"ok": 2, "unparsed": 1, "timeout": 1, "failed": 0}
    assert scores.responses == 4
    assert scores.truncated is None
    assert scores.mean_response_tokens is None
    assert scores.made_from == {}


def test_lengths(tmp_path: Path) -> None:
    rows = [row | {"response_tokens": 10 * i, "truncated": i > 2} for i, row in enumerate(ROWS)]
    scores = read_scores(write_parquet(tmp_path / "s.parquet", rows))
    assert scores.truncated == 1
    assert scores.mean_response_tokens == 15.0


@pytest.mark.parametrize("write", [write_jsonl, write_parquet])
def test_majority(tmp_path: Path, write: Callable) -> None:
    """Problem b votes 1:1, the lower sample wins, wherever it stands; problem a has no box."""
    rows = [row | {"boxed": box} for row, box in zip(ROWS, ["2", None, "1", None], strict=True)]
    rows[0] |= {"sample": 1}
    rows[2] |= {"sample": 0}
    path = write(tmp_path / ("s.jsonl" if write is write_jsonl else "s.parquet"), rows)
    scores = read_scores(path)
    assert scores.majority_P is not None
    assert scores.majority_P.tolist() == [False, False]
    assert summary(scores, None, seed=0).splitlines()[-1].split() == ["majority", "0.0000"]
    rows[0] |= {"sample": 0}
    rows[2] |= {"sample": 1}
    majority_P = read_scores(write(path, rows)).majority_P
    assert majority_P is not None
    assert majority_P.tolist() == [True, False]


def test_no_vote_without_boxes(tmp_path: Path) -> None:
    scores = read_scores(write_jsonl(tmp_path / "s.jsonl", ROWS))
    assert scores.majority_P is None
    assert "majority" not in summary(scores, None, seed=0)


def test_summary_counts_truncated_and_tokens(tmp_path: Path) -> None:
    rows = [row | {"response_tokens": 10 * i, "truncated": i > 2} for i, row in enumerate(ROWS)]
    text = summary(read_scores(write_parquet(tmp_path / "s.parquet", rows)), None, seed=0)
    lines = [line.rsplit(maxsplit=1) for line in text.splitlines()]
    assert ["truncated", "1"] in lines
    assert ["mean tokens", "15.0"] in lines


def test_summary(tmp_path: Path) -> None:
    """Two problems, 1/2 and 0: mean 0.25, error sqrt(1/16 / 2) = 0.177."""
    text = summary(read_scores(write_jsonl(tmp_path / "s.jsonl", ROWS)), None, seed=0)
    lines = [line.split() for line in text.splitlines()]
    assert ["problems", "2"] in lines
    assert ["responses", "4"] in lines
    assert ["unparsed", "1"] in lines
    assert ["timeout", "1"] in lines
    name, value, _, error = lines[-2]
    assert (name, value) == ("pass@1", "0.2500")
    assert float(error) == pytest.approx(0.177, rel=0.03)
    assert lines[-1] == ["pass@2", "0.5000"]


def test_summary_of_unequal_samples(tmp_path: Path) -> None:
    text = summary(read_scores(write_jsonl(tmp_path / "s.jsonl", ROWS[:3])), None, seed=0)
    assert "1 to 2" in text
    assert "pass@2" not in text


GOOD = json.dumps(ROWS[0])
COUNT = r"must hold a whole number from 0 to 2\*\*31 - 1, not"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no responses"),
        (GOOD + "\n{", "line 2 is not JSON"),
        ("\ufeff" + GOOD, "line 1 is not JSON .*BOM"),
        (GOOD + "\n" + "[" * 100_000, "line 2 is not JSON .*recursion"),
        ("[1]", "line 1 is not a JSON object"),
        ('{"sample": 0}', "line 1: column 'problem_id' is missing"),
        (GOOD + "\n" + GOOD, "line 2: sample 0 of problem 'b' stands there twice"),
    ],
)
def test_bad_lines(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=message) as caught:
        read_scores(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


NESTED = json.loads("[" * 500 + "]" * 500)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("problem_id", 1.5, "must hold text or a whole number, not 1.5"),
        ("problem_id", True, "must hold text or a whole number, not True"),
        ("problem_id", ["a"], r"must hold text or a whole number, not \['a'\]"),
        ("problem_id", None, "is empty; it must hold text or a whole number"),
        ("sample", "1", COUNT + " '1'"),
        ("sample", 1.0, COUNT + " 1.0"),
        ("sample", True, COUNT + " True"),
        ("sample", -1, COUNT + " -1"),
        ("sample", 2**31, COUNT + " 2147483648"),
        ("sample", 10**30, COUNT + " 10{30}"),
        ("sample", NESTED, COUNT + r" \[\["),
        ("sample", None, "is empty"),
        ("correct", 1, "must hold true or false, not 1"),
        ("correct", "x", "must hold true or false, not 'x'"),
        ("correct", None, "is empty; it must hold true or false"),
        ("status", "good", "must hold one of ok, unparsed, timeout, failed, not 'good'"),
        ("status", ["ok"], r"must hold one of .*, not \['ok'\]"),
        ("status", None, "is empty"),
        ("response_tokens", 1.5, COUNT + " 1.5"),
        ("response_tokens", "7", COUNT + " '7'"),
        ("response_tokens", -7, COUNT + " -7"),
        ("truncated", 0, "must hold true or false, not 0"),
        ("boxed", 3, "must hold text, not 3"),
        ("truncated", "no", "must hold true or false, not 'no'"),
    ],
)
def test_bad_values(tmp_path: Path, column: str, value: object, message: str) -> None:
    """A bad value is named with its column and line, or row where a Parquet column can hold it."""
    lengths = {"response_tokens": 3, "truncated": False, "boxed": "7"}
    rows = [row | lengths for row in ROWS]
    rows[2] = rows[2] | {column: value}
    path = write_jsonl(tmp_path / "s.jsonl", rows)
    with pytest.raises(ValueError, match=rf"s\.jsonl: line 3: column '{column}' {message}"):
        read_scores(path)
    if value is None or (isinstance(value, int) and -(2**63) <= value < 2**63):
        others = [{**row, column: value} for row in rows]
        path = write_parquet(tmp_path / "s.parquet", others)
        with pytest.raises(ValueError, match=rf"s\.parquet: row 1: column '{column}' {message}"):
            read_scores(path)


def test_numbers_name_problems_too(tmp_path: Path) -> None:
    rows = [row | {"problem_id": ord(row["problem_id"])} for row in ROWS]
    assert read_scores(write_parquet(tmp_path / "s.parquet", rows)).problem_id == ["98", "97"]


def test_bad_bytes(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"s\.jsonl: line 1 is not JSON"):
        read_scores(tmp_path / "s.jsonl")


REMEDY = r".*Delete it and start again\.$"


def test_bad_parquet(tmp_path: Path) -> None:
    path = tmp_path / "s.parquet"
    path.write_text("no Parquet")
    with pytest.raises(ValueError, match=r"s\.parquet: not a readable Parquet file" + REMEDY):
        read_scores(path)
    write_parquet(path, [{"x": 1}])
    with pytest.raises(ValueError, match="column 'problem_id' is missing"):
        read_scores(path)
    text = pa.array([b"\xff"]).view(pa.string())
    pq.write_table(pa.Table.from_pylist(ROWS[:1]).set_column(0, "problem_id", text), path)
    with pytest.raises(ValueError, match=r"not a readable Parquet file \(.*UTF8" + REMEDY):
        read_scores(path)
    twice = pa.Table.from_pylist(ROWS)
    pq.write_table(twice.append_column("sample", twice["sample"]), path)
    with pytest.raises(ValueError, match=r"not a readable Parquet file \(.*sample" + REMEDY):
        read_scores(path)


def test_truncated_parquet(tmp_path: Path) -> None:
    path = write_parquet(tmp_path / "s.parquet", ROWS)
    whole = path.read_bytes()
    for length in range(0, len(whole), 50):
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"s\.parquet: not a readable Parquet file" + REMEDY):
            read_scores(path)


def test_flipped_bits_of_a_page_are_found(tmp_path: Path) -> None:
    """A single bit of `correct` would be another result."""
    path = tmp_path / "s.parquet"
    rows = [row | {"sample": i} for i in range(100) for row in ROWS[:1]]
    pq.write_table(pa.Table.from_pylist(rows), path, write_page_checksum=True, compression="none")
    correct = pq.read_metadata(path).row_group(0).column(2)
    assert correct.path_in_schema == "correct"
    content = bytearray(path.read_bytes())
    end = correct.data_page_offset + correct.total_compressed_size
    content[end - 1] ^= 2
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"s\.parquet: not a readable .*CRC" + REMEDY):
        read_scores(path)


def test_no_flipped_bit_of_the_footer_changes_the_scores(tmp_path: Path) -> None:
    """As `respo.parquet` writes them. 300 bits of a fixed seed; all were tried once."""
    path = tmp_path / "s.parquet"
    rows = [row | {"sample": i} for i in range(20) for row in ROWS[:1]]
    parquet.write_parquet(path, pa.Table.from_pylist(rows), {"seed": 3})
    expected = repr(read_scores(path))
    whole = path.read_bytes()
    seal = whole.index(b"respo footer sha256:")
    places = random.Random(0).sample(range(8 * seal, 8 * len(whole)), 300)
    for place in places:
        damaged = bytearray(whole)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        with suppress(ValueError):
            assert repr(read_scores(path)) == expected
    damaged = bytearray(whole)
    damaged[whole.rindex(b"correct")] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(ValueError, match=r"s\.parquet: .*its footer was .*damaged" + REMEDY):
        read_scores(path)


def test_a_footer_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    """One without a hash, whose numbers of rows differ."""
    path = write_parquet(tmp_path / "s.parquet", [ROWS[0] | {"sample": i} for i in range(20)])
    whole = path.read_bytes()
    # By Thrift's compact protocol: field 3 is an i64, 2 x 20, and field 4 a list of one struct.
    assert whole.count(b"\x16\x28\x19\x1c") == 1
    path.write_bytes(whole.replace(b"\x16\x28\x19\x1c", b"\x16\x2a\x19\x1c"))
    with pytest.raises(ValueError, match="counts 21 rows, its row groups 20, and 20 can" + REMEDY):
        read_scores(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [(b"{", "is not JSON"), (b"[" * 100_000, "is not JSON"), (b"[]", "is not a JSON object")],
)
def test_broken_provenance(tmp_path: Path, text: bytes, message: str) -> None:
    path = tmp_path / "s.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS).replace_schema_metadata({b"respo": text}), path)
    with pytest.raises(ValueError, match=rf"s\.parquet: metadata 'respo' {message}" + REMEDY):
        read_scores(path)


@pytest.mark.parametrize(
    ("name", "k", "message"),
    [
        ("s.jsonl", "3", "s.jsonl: --k 3: must lie between 1 and 2, the number of samples of"),
        ("s.jsonl", "0", "s.jsonl: --k 0: must lie between 1 and 2, the number of samples of"),
        ("s.jsonl", "-1", "s.jsonl: --k -1: must lie between 1 and 2"),
        ("none.jsonl", "1", "No such file"),
        (".", "1", "error: "),
    ],
)
def test_command_fails_with_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, k: str, message: str
) -> None:
    write_jsonl(tmp_path / "s.jsonl", ROWS)
    monkeypatch.setattr(sys, "argv", ["x", "--scores", str(tmp_path / name), "--k", k])
    with pytest.raises(SystemExit) as caught:
        main()
    assert message in str(caught.value.code)
    assert "\n" not in str(caught.value.code)


def test_command(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "s.jsonl", ROWS)
    done = subprocess.run(
        [sys.executable, "-m", "respo.statistics", "--scores", path, "--k", "2"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.endswith("pass@2      0.5000\n")
    assert done.stderr == ""
