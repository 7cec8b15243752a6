"""A study whose training set and benchmark are files of this machine, through snakemake."""

import json
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from respo.data import chain
from respo.parquet import made_from

RUN = "results/rows/mini/grpo/N1/seed1"
CELL = f"{RUN}/eval/1/mine/cell.json"
DATA = "results/rows/data/{}/mine.parquet"

pytestmark = pytest.mark.integration


def snakemake(folder, *arguments):
    result = subprocess.run(
        [sys.executable, "-m", "snakemake", "--cores", "2", *arguments, "--config", "study=rows"],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    return result.returncode, result.stdout + result.stderr


def would_run(folder, *arguments):
    code, output = snakemake(folder, *arguments, "--dry-run", "--quiet", "rules")
    assert code == 0, output
    lines = [line.split() for line in output.splitlines()]
    return {line[0] for line in lines if len(line) == 2 and line[1].isdigit()}


@pytest.fixture(scope="module")
def checkout(mini, tmp_path_factory):
    """A checkout with the study, its files, and one cell made."""
    folder = tmp_path_factory.mktemp("checkout")
    config = mini.copy_project(folder)

    def write(name, **values):
        (config / f"{name}.yaml").write_text(yaml.safe_dump(values))

    tiny = yaml.safe_load((config / "studies" / "tiny.yaml").read_text())
    write(
        "studies/rows",
        **tiny
        | {"methods": ["grpo"], "models": ["mini"], "staleness": [1], "seeds": [1]}
        | {"extra_runs": [], "updates": 1, "mini_batch": 2, "rollouts_per_prompt": 4}
        | {"checkpoints": [1], "train_data": "mine", "benchmarks": ["mine"]}
        | {"tables": ["respo/table1"], "figures": ["respo/fig3"]}
        | {"evaluation": {**tiny["evaluation"], "updates": [1]}},
    )
    model = yaml.safe_load((config / "models" / "qwen3-tiny.yaml").read_text())
    model["architecture"] |= {"hidden_size": 16, "num_hidden_layers": 1, "head_dim": 8}
    model["warm_start"] |= {"steps": 20, "batch": 16, "learning_rate": 0.01, "direct": 1.0}
    write("models/mini", **model | {"max_prompt_tokens": 8, "max_response_tokens": 16})
    write(
        "datasets/mine",
        source="rows",
        path="mine/train.jsonl",
        fields={"prompt": "q", "answer": "meta.gold"},
        distinct=True,
    )
    write(
        "benchmarks/mine",
        source="rows",
        path="mine/test.parquet",
        fields={"id": "name", "prompt": "q", "answer": "gold"},
        rows=4,
        label="Mine",
        version=1,
        samples=2,
        verifier="strict_box",
    )
    (folder / "mine").mkdir()
    # Each prompt twice; prompts of up to 5 operators, of which the longest exceed 8 tokens.
    prompts = chain.distinct_prompts(1, 5, 20, seed=7, held_out=False)
    rows = [{"q": text, "meta": {"gold": chain.answer(text)}} for text in prompts * 2]
    (folder / "mine/train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    held_out = chain.distinct_prompts(1, 3, 4, seed=7, held_out=True)
    gold = [[int(chain.answer(text))] for text in held_out]
    table = pa.table({"name": ["a", "b", "c", "d"], "q": held_out, "gold": gold})
    pq.write_table(table, folder / "mine/test.parquet")
    code, output = snakemake(folder, CELL)
    assert code == 0, output
    return folder


def test_rows_of_files_are_trained_and_evaluated_on(checkout):
    train = pq.read_table(checkout / DATA.format("train"))
    assert (train.num_rows, made_from(train)["files"]["copies"]) == (20, 20)
    assert (
        "were dropped" in (checkout / "results/rows/logs/train/mini/grpo/N1/seed1.log").read_text()
    )
    benchmark = pq.read_table(checkout / DATA.format("held_out")).to_pydict()
    assert benchmark["answer"] == [chain.answer(prompt) for prompt in benchmark["prompt"]]
    cell = json.loads((checkout / CELL).read_text())
    assert [problem["id"] for problem in cell["problems"]] == ["a", "b", "c", "d"]
    assert cell["responses"] == 8


def test_what_a_changed_file_remakes(checkout):
    assert would_run(checkout, CELL) == set()
    path = checkout / "mine" / "train.jsonl"
    text = path.read_text()
    path.write_text(text.replace("\n", "\n\n", 1))
    assert {"data", "train_local", "cell"} <= would_run(checkout, CELL)
    path.write_text(text)
    assert would_run(checkout, CELL) == set()


def test_a_file_that_is_not_there(checkout):
    path = checkout / "mine" / "test.parquet"
    path.rename(checkout / "elsewhere.parquet")
    code, output = snakemake(checkout, CELL, "--dry-run")
    (checkout / "elsewhere.parquet").rename(path)
    assert code == 1
    assert "config/benchmarks/mine.yaml: path: mine/test.parquet: no such file, seen from" in output
    assert "Traceback" not in output
