"""Rows of files: mapping, copies, counts, and messages that name file and row."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from respo.cli import UserError
from respo.config.schema import Rows, Union
from respo.data.rows import read_rows, read_union

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("RESPO_SHARED", ROOT.parent / "shared"))


def config(**changes):
    values = {"source": "rows", "path": "x", "fields": {"prompt": "q", "answer": "a"}, **changes}
    return Rows.model_validate(values)


@pytest.fixture
def read(tmp_path):
    def read(*rows, **changes):
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return read_rows(config(**changes), [path])

    return read


def test_a_row(read):
    reading = read({"q": " 1+1 ", "a": 2, "other": []}, template="{prompt}\nUse \\boxed{}.")
    assert reading.table().to_pydict() == {
        "id": ["row-00000"],
        "prompt": ["1+1\nUse \\boxed{}."],
        "answer": ["2"],
    }
    assert reading.summary() == ["1 rows read, 1 kept"]


def test_names_come_from_a_field(read):
    reading = read({"q": "1", "a": 1, "n": {"id": 7}}, fields={**FIELDS, "id": "n.id"})
    assert [row.id for row in reading.rows] == ["7"]


FIELDS = {"prompt": "q", "answer": "a"}


def test_each_prompt_a_hundred_times(tmp_path):
    # The form of DAPO-Math-17k as published: chat and reward model, each prompt 100 times.
    def row(number, answer):
        return {
            "prompt": [{"role": "user", "content": f"What is {number}?"}],
            "reward_model": {"ground_truth": answer, "style": "rule-lighteval/MATH_v2"},
            "data_source": "math_dapo",
        }

    table = pa.Table.from_pylist([row(n, str(n)) for _ in range(100) for n in range(50)])
    # One copy of prompts 3 and 5 disagrees.
    bad = pa.Table.from_pylist([row(3, "4"), row(5, "55")])
    path = tmp_path / "dapo.parquet"
    pq.write_table(pa.concat_tables([table, bad]), path)
    fields = {"prompt": "prompt", "answer": "reward_model.ground_truth"}
    reading = read_rows(config(fields=fields, distinct=True, rows=5002), [path])
    assert [row.answer for row in reading.rows] == [str(n) for n in range(50) if n not in (3, 5)]
    assert (reading.read, reading.copies) == (5002, 5002 - 50)
    assert [row.id for row in reading.disagreeing] == ["row-00003", "row-00005"]
    assert reading.summary() == [
        "5002 rows read, 48 kept",
        "4952 copies of a prompt left out",
        f"2 prompts dropped, since copies disagree on the answer: {path}: row 4, {path}: row 6 "
        "(the file's provenance lists them all)",
    ]


def test_copies_agree_on_the_canonical_answer(read):
    rows = [{"q": "x", "a": "33"}, {"q": " x", "a": 33.0}, {"q": "x", "a": "033"}]
    assert [r.answer for r in read(*rows, distinct=True, answer="integer").rows] == ["33"]
    assert len(read(*rows, answer="integer").rows) == 3


def test_files_follow_one_another(tmp_path):
    paths = [tmp_path / "a.jsonl", tmp_path / "b.json"]
    paths[0].write_text('{"q": "1", "a": 1}\n')
    paths[1].write_text('[{"q": "2", "a": 2}]')
    reading = read_rows(config(rows=2), paths)
    assert [row.id for row in reading.rows] == ["row-00000", "row-00001"]


def test_rows_without_one_answer_can_be_left_out(read):
    rows = [{"q": "1", "a": '["1"]'}, {"q": "2", "a": '["1", "2"]'}, {"q": "3", "a": "[]"}]
    reading = read(*rows, answer="list", drop_unanswered=True, rows=3)
    assert [(row.id, row.answer) for row in reading.rows] == [("row-00000", "1")]
    assert (reading.read, reading.unanswered, reading.copies) == (3, 2, 0)
    assert reading.summary() == [
        "3 rows read, 1 kept",
        "2 rows without one gold answer left out",
    ]


@pytest.fixture
def union(tmp_path):
    """Read sets of rows, each a list of (question, answer)."""

    def union(*sets, distinct=True, part_distinct=False):
        paths = [tmp_path / f"{number}.jsonl" for number in range(len(sets))]
        for path, rows in zip(paths, sets, strict=True):
            path.write_text("".join(json.dumps({"q": q, "a": a}) + "\n" for q, a in rows))
        parts = [config(path=str(path), distinct=part_distinct).model_dump() for path in paths]
        both = Union.model_validate({"source": "union", "parts": parts, "distinct": distinct})
        return read_union(both, [[path] for path in paths])

    return union


def test_a_union(union):
    reading = union([("x", 1), ("y", 2)], [("x", 1), ("z", 3), ("y", 9)])
    # x stands in both, and about y they disagree.
    assert reading.table().to_pydict() == {
        "id": ["1-row-00000", "2-row-00001"],
        "prompt": ["x", "z"],
        "answer": ["1", "3"],
    }
    assert [row.id for row in reading.disagreeing] == ["1-row-00001"]
    assert (reading.read, reading.copies) == (5, 2)


def test_what_disagrees_within_a_part_is_in_no_other(union):
    sets = [("x", 1), ("x", 2), ("w", 0)], [("x", 1), ("z", 3)]
    for changes in ({}, {"part_distinct": True}):
        reading = union(*sets, **changes)
        assert [row.prompt for row in reading.rows] == ["w", "z"]
        assert [row.id for row in reading.disagreeing] == ["1-row-00000"]
        assert (reading.read, reading.copies) == (5, 2)


def test_a_union_may_keep_copies(union):
    reading = union([("x", 1)], [("x", 2)], distinct=False)
    assert [row.id for row in reading.rows] == ["1-row-00000", "2-row-00000"]
    assert (reading.copies, reading.disagreeing) == (0, [])


@pytest.mark.parametrize(
    ("rows", "changes", "expected"),
    [
        (
            [{"q": "1", "a": ""}],
            {},
            "rows.jsonl:1: the answer is empty; mend the row, change fields.answer ('a'), or set "
            "drop_unanswered",
        ),
        # A row that is broken otherwise is never left out.
        (
            [{"q": "1", "a": "x"}],
            {"answer": "list", "drop_unanswered": True},
            "rows.jsonl:1: the answer 'x' is not a list as JSON; mend the row or change",
        ),
        ([{"q": "1"}], {"drop_unanswered": True}, "rows.jsonl:1: field 'a' is missing"),
        (
            [{"q": "1", "a": 1}, {"q": "2"}],
            {},
            "rows.jsonl:2: field 'a' is missing; there are q; mend the row or change "
            "fields.answer ('a')",
        ),
        ([{"q": "", "a": 1}], {}, "rows.jsonl:1: the prompt is empty; mend the row or change"),
        (
            [{"q": "1", "a": 1}, {"q": "2", "a": 2}],
            {"fields": {**FIELDS, "id": "q2"}},
            "rows.jsonl:1: field 'q2' is missing",
        ),
        (
            [{"q": "1", "a": 1, "n": 7}, {"q": "2", "a": 2, "n": "7"}],
            {"fields": {**FIELDS, "id": "n"}},
            "rows.jsonl:2: id '7' stands in {folder}/rows.jsonl:1 too; make it unique or leave",
        ),
        ([{"q": "1", "a": "x"}], {"answer": "integer"}, "rows.jsonl:1: the answer 'x' is not an"),
        ([{"q": "1", "a": 1}], {"rows": 30}, "rows.jsonl: 1 rows, but rows is 30; get the right"),
        ([], {}, "rows.jsonl: no row is left; get the right file"),
    ],
)
def test_bad_rows(tmp_path, read, rows, changes, expected):
    with pytest.raises(UserError) as error:
        read(*rows, **changes)
    assert str(error.value).startswith(f"{tmp_path}/{expected}".replace("{folder}", str(tmp_path)))


# The benchmarks as another common copy has them: other fields, same configuration otherwise.
COPIES = {
    # name: fields, answer, rows, first and last answer (read in the files)
    "aime24": ({"id": "id", "prompt": "problem", "answer": "answer"}, "integer", 30, "204", "902"),
    "aime25": ({"id": "id", "prompt": "problem", "answer": "answer"}, "integer", 30, "70", "240"),
    "amc23": ({"id": "id", "prompt": "question", "answer": "answer"}, "integer", 40, "27", "8"),
    "olympiadbench": (
        {"id": "id", "prompt": "question", "answer": "final_answer"},
        "text",
        675,
        "2",
        None,
    ),
    "minerva_math": ({"id": "idx", "prompt": "problem", "answer": "solution"}, "boxed", 272, "1.6"),
    "math500": (
        {"prompt": "question", "answer": "answer"},
        "boxed",
        500,
        r"\left( 3, \frac{\pi}{2} \right)",
    ),
}


@pytest.mark.parametrize("name", COPIES)
def test_the_adapters_take_other_copies_of_the_benchmarks(name):
    fields, answer, count, first, *last = COPIES[name]
    path = SHARED / "data" / "benchmarks" / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip(f"{path} is not here")
    written = yaml.safe_load((ROOT / "config" / "benchmarks" / f"{name}.yaml").read_text())
    assert name == "olympiadbench" or written["rows"] == count
    shared = {key: written[key] for key in ("source", "template")}
    changes = {"path": str(path), "fields": fields, "answer": answer, "rows": count}
    rows = read_rows(Rows.model_validate(shared | changes), [path]).rows
    assert len({row.id for row in rows}) == count
    assert rows[0].answer == first
    if last and last[0] is not None:
        assert rows[-1].answer == last[0]
    assert all(row.prompt.endswith("answer within \\boxed{}.") for row in rows)
    if answer == "integer":
        assert all(str(int(row.answer)) == row.answer for row in rows)
