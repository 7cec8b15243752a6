import hashlib
import json
import subprocess
import sys

import pyarrow.parquet as pq

from respo.data import chain
from respo.parquet import made_from, read_parquet

CONFIG = "source: chain\noperators: [1, 2]\nrows: 20\nseed: 5\n"


def prepare(folder, config=CONFIG, side="train"):
    (folder / "c.yaml").write_text(config)
    command = [sys.executable, "-m", "respo.data", "--config", "c.yaml", "--side", side]
    return subprocess.run(
        [*command, "--out", "out.parquet"], cwd=folder, capture_output=True, text=True
    )


def test_rows(tmp_path):
    assert prepare(tmp_path).returncode == 0
    table = pq.read_table(tmp_path / "out.parquet").to_pydict()
    assert list(table) == ["id", "prompt", "answer"]
    assert table["id"][0] == "chain-00000"
    assert table["answer"] == [chain.answer(prompt) for prompt in table["prompt"]]
    assert len(set(table["prompt"])) == 20
    assert not any(chain.is_held_out(prompt) for prompt in table["prompt"])


def test_too_many_rows(tmp_path):
    result = prepare(tmp_path, CONFIG.replace("[1, 2]", "[1, 1]").replace("20", "400"), "held_out")
    assert result.returncode == 1
    assert result.stderr.startswith("error: c.yaml: rows: only ")
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "out.parquet").exists()


def test_an_unknown_key(tmp_path):
    result = prepare(tmp_path, CONFIG + "colour: red\n")
    assert result.returncode == 1
    assert "c.yaml: colour: unknown key; allowed: source, operators, rows, seed" in result.stderr


ROWS = "source: rows\npath: sums.jsonl\nfields: {prompt: q, answer: a}\ndistinct: true\n"


def test_rows_of_a_file(tmp_path):
    lines = ['{"q": "1+1=", "a": 2}', '{"q": "1+1=", "a": 2}', '{"q": "1+2=", "a": 4}']
    data = "\n".join([*lines, '{"q": "1+2=", "a": 3}'])
    (tmp_path / "sums.jsonl").write_text(data)
    result = prepare(tmp_path, ROWS)
    assert result.returncode == 0, result.stderr
    assert result.stdout == (
        "4 rows read, 1 kept\n2 copies of a prompt left out\n"
        "1 prompts dropped, since copies disagree on the answer: sums.jsonl:3 "
        "(the file's provenance lists them all)\nout.parquet: 1 rows\n"
    )
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.to_pydict() == {"id": ["row-00000"], "prompt": ["1+1="], "answer": ["2"]}
    assert made_from(table)["files"] == {
        "commit": None,
        "sha256": {"sums.jsonl": hashlib.sha256(data.encode()).hexdigest()},
        "rows": 4,
        "copies": 2,
        "unanswered": 0,
        "disagreeing": ["row-00002"],
    }


def test_a_union_of_files(tmp_path):
    texts = {
        "a.jsonl": '{"q": "1+1=", "a": 2}\n',
        "b.jsonl": '{"q": "1+1=", "a": 2}\n{"q": "1+2=", "a": ""}\n{"q": "1+3=", "a": 4}\n',
    }
    part = "{{source: rows, path: {}, fields: {{prompt: q, answer: a}}, drop_unanswered: true}}"
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    parts = ", ".join(part.format(name) for name in texts)
    result = prepare(tmp_path, f"source: union\nparts: [{parts}]\ndistinct: true\n")
    assert result.returncode == 0, result.stderr
    table = pq.read_table(tmp_path / "out.parquet")
    assert table.to_pydict()["id"] == ["1-row-00000", "2-row-00002"]
    digests = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
    assert made_from(table)["files"] == {
        "parts": [{"commit": None, "sha256": {name: digests[name]}} for name in texts],
        "rows": 4,
        "copies": 1,
        "unanswered": 1,
        "disagreeing": [],
    }


def test_files_of_a_folder(tmp_path):
    (tmp_path / "sums").mkdir()
    (tmp_path / "sums" / "a.jsonl").write_text('{"q": "1+1=", "a": 2}\n')
    config = ROWS.replace("sums.jsonl", "sums\nfiles: [a.jsonl]")
    assert prepare(tmp_path, config).returncode == 0
    assert pq.read_table(tmp_path / "out.parquet").num_rows == 1


def test_no_file(tmp_path):
    result = prepare(tmp_path, ROWS)
    assert result.returncode == 1
    assert result.stderr == "error: sums.jsonl: no such file\n"


PROGRAMS = "source: programs\nform: deepcoder\npath: problems.jsonl\nversion: 3\n"


def test_programs_are_written_one_after_the_other(tmp_path):
    tests = json.dumps([{"input": "1", "output": "2"}])
    line = json.dumps({"problem": "Twice.", "tests": tests}) + "\n"
    (tmp_path / "problems.jsonl").write_text(line * 3)
    result = prepare(tmp_path, PROGRAMS, side="held_out")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "3 problems read, 3 kept\nout.parquet: 3 rows\n"
    with pq.ParquetFile(tmp_path / "out.parquet") as file:
        # One problem's tests are read at a time.
        assert file.num_row_groups == 3
        assert file.schema_arrow.names == ["id", "prompt", "answer", "tests"]
    origin = made_from(read_parquet(tmp_path / "out.parquet"))
    assert origin["version"] == 3
    assert origin["files"]["rows"] == origin["files"]["window"] == 3
    assert origin["files"]["sha256"] == {
        "problems.jsonl": hashlib.sha256((line * 3).encode()).hexdigest()
    }


def test_nothing_is_written_if_a_problem_is_bad(tmp_path):
    good = json.dumps({"problem": "p", "tests": json.dumps([{"input": "1", "output": "2"}])})
    (tmp_path / "problems.jsonl").write_text(good + '\n{"problem": "p"}\n')
    result = prepare(tmp_path, PROGRAMS)
    assert result.returncode == 1
    assert result.stderr == (
        "error: problems.jsonl:2: field 'tests' is missing; there are problem; mend the row or "
        "change form\n"
    )
    assert {path.name for path in tmp_path.iterdir()} == {"c.yaml", "problems.jsonl"}


def test_choices_are_written(tmp_path):
    (tmp_path / "q.jsonl").write_text('{"q": "Which?", "o": ["x", "y"], "a": "B"}\n')
    config = "source: choices\npath: q.jsonl\nfields: {prompt: q, options: [o], answer: a}\n"
    result = prepare(tmp_path, config + "version: 1\n", side="held_out")
    assert result.stdout == "1 rows read, 1 kept\nout.parquet: 1 rows\n", result.stderr
    table = read_parquet(tmp_path / "out.parquet")
    assert table.to_pydict() == {
        "id": ["row-00000"],
        "prompt": ["Which?\nA. x\nB. y"],
        "answer": ["B"],
    }
    assert made_from(table)["version"] == 1
