"""Snakemake trains with verl on a CPU and makes cells: FSDP, and Megatron with replay of routes."""

import importlib.util
import json

import pytest

from respo.parquet import read_parquet

pytestmark = [pytest.mark.verl, pytest.mark.integration, pytest.mark.filterwarnings("ignore")]
for package in ("verl", "vllm", "megatron", "mbridge"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed", allow_module_level=True)


@pytest.mark.parametrize("name", ["dense", "mixture"])
def test_a_killed_run_is_continued_and_makes_its_cell(study, name):
    model, updates = study.models[name], study.updates
    step = int((model.killed / "checkpoints/latest_checkpointed_iteration.txt").read_text())
    assert 1 <= step < updates // study.staleness
    assert f"{model.run}: continues after update {step * study.staleness}\n" in study.log
    train = json.loads((model.run / "train.json").read_text())
    kept = [str(study.staleness), str(updates)]
    assert (train["update"], list(train["checkpoints"]), train["restarts"]) == (updates, kept, 1)
    metrics = read_parquet(model.run / "metrics.parquet")
    assert metrics["update"].to_pylist() == list(range(1, updates + 1))
    cell = json.loads((model.run / f"eval/{updates}/chain-easy/cell.json").read_text())
    assert (cell["model"], cell["method"], cell["update"]) == (name, model.method, updates)
    assert cell["responses"] == study.evaluated
    assert cell["made_from"]["checkpoint_sha256"] == train["checkpoints"][str(updates)]


def test_a_model_as_it_comes_has_a_cell(study):
    baseline = study.results / "dense" / "baseline" / "N0" / "seed0" / "eval" / "0" / "chain-easy"
    assert json.loads((baseline / "cell.json").read_text())["responses"] == study.evaluated


def test_the_table_is_complete(study):
    table = (study.results / "tables" / "respo" / "table1.md").read_text()
    rows = [line.split("|")[1:4] for line in table.splitlines() if line.startswith("| ")]
    assert [[cell.strip() for cell in row] for row in rows[2:5]] == [
        ["dense", "", "as it comes"],
        ["dense", "2", "ReSPO"],
        ["mixture", "2", "ReSPO + R3"],
    ]
    assert "Incomplete" not in table
