import subprocess
import sys

import pyarrow.parquet as pq

from respo.data import chain

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
