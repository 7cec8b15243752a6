import json
import subprocess
import sys

import pyarrow as pa
import pytest

from respo.explain import __main__ as command
from respo.parquet import write_parquet


@pytest.fixture
def scores(tmp_path):
    path = tmp_path / "scores.parquet"
    columns = {"problem_id": ["a"], "correct": [True], "status": ["ok"]}
    made_from = {"verifier": {"name": "math", "version": "0.9"}, "environment": {"python": "3"}}
    write_parquet(path, pa.table(columns), made_from)
    return path


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["explain", *map(str, arguments)])
    command.main()


def test_text_and_json(monkeypatch, capsys, scores):
    run(monkeypatch, scores)
    text = capsys.readouterr().out
    assert text.startswith(f"{scores}: scores\n")
    assert "  verifier: math 0.9\n" in text
    run(monkeypatch, scores, "--json")
    assert json.loads(capsys.readouterr().out)["verifier"] == {"name": "math", "version": "0.9"}


def test_a_wrong_path_is_one_line(monkeypatch):
    with pytest.raises(SystemExit, match=r"^error: absent: no such file or folder$"):
        run(monkeypatch, "absent")


def test_an_empty_path_is_not_this_folder(monkeypatch):
    with pytest.raises(SystemExit, match=r"^error: PATH is empty; give a file or folder of res"):
        run(monkeypatch, "")


def test_nothing_heavy_is_imported_for_what_needs_none(scores):
    code = (
        "import sys; from respo.explain.__main__ import main; main();"
        "print({'torch', 'matplotlib', 'sympy', 'scipy'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, scores], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "set()"
