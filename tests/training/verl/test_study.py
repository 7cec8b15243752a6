"""Snakemake trains with verl on a CPU and makes cells: FSDP, and Megatron with replay of routes."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from respo.files import read_parquet
from respo.training.verl import update_log
from respo.training.verl.processes import descendants

pytestmark = [pytest.mark.verl, pytest.mark.integration, pytest.mark.filterwarnings("ignore")]
for package in ("verl", "vllm", "megatron", "mbridge"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed", allow_module_level=True)

ROOT = Path(__file__).parents[3]
UPDATES, STALENESS, PROBLEMS, SAMPLES = 4, 2, 6, 2
STUDY = {
    "title": "Two models on a CPU",
    "methods": ["respo"],
    "models": ["dense"],
    "staleness": [STALENESS],
    "seeds": [1],
    "extra_runs": [{"methods": ["respo-r3"], "models": ["mixture"], "staleness": [STALENESS]}],
    "baselines": ["dense"],
    "updates": UPDATES,
    "mini_batch": 4,
    "rollouts_per_prompt": 4,
    "temperature": 1.0,
    "loss_aggregation": "token-mean",
    "optimizer": {
        "learning_rate": 1e-3,
        "warmup_updates": 0,
        "betas": [0.9, 0.95],
        "weight_decay": 0.1,
        "gradient_clip": 1.0,
    },
    "checkpoints": [2, UPDATES],
    "train_data": "chain",
    "benchmarks": ["chain-easy"],
    "evaluation": {
        "updates": [UPDATES],
        "temperature": 1.0,
        "top_p": 0.7,
        "seed": 0,
        "samples": {"chain-easy": SAMPLES},
    },
    "tables": ["respo/table1"],
    "figures": [],
}


def edit(path, **changes):
    values = yaml.safe_load(path.read_text())
    for key, value in changes.items():
        *outer, last = key.split("__")
        target = values
        for part in outer:
            target = target[part]
        target[last] = value
    path.write_text(yaml.safe_dump(values))


@pytest.fixture
def project(tmp_path, cpu_options, megatron_options, save_tiny_model):
    """A copy of the project with a study of two tiny models for verl."""
    root = tmp_path / "project"
    for name in ("workflow", "config", "envs", "profiles"):
        shutil.copytree(ROOT / name, root / name)
    shutil.copy(ROOT / "Snakefile", root)
    config = root / "config"
    (config / "studies" / "cpu.yaml").write_text(yaml.safe_dump(STUDY))
    edit(config / "datasets" / "chain.yaml", operators=[1, 2], rows=40)
    edit(config / "benchmarks" / "chain-easy.yaml", operators=[1, 2], rows=PROBLEMS)
    of = {"dense": "qwen3-1.7b-base", "mixture": "qwen3-30b-a3b-base"}
    for name, like in of.items():
        save_tiny_model(tmp_path / name, mixture_of_experts=name == "mixture")
        model = config / "models" / f"{name}.yaml"
        shutil.copy(config / "models" / f"{like}.yaml", model)
        edit(
            model,
            label=name,
            checkpoint={"path": str(tmp_path / name)},
            max_prompt_tokens=16,
            max_response_tokens=24,
            resources__gpus_per_node=1,
            resources__parallelism={},
            resources__tokens_per_gpu=256,
            resources__verl_overrides=cpu_options if name == "dense" else megatron_options,
        )
    edit(config / "models" / "dense.yaml", master_weights="fp32")
    # What goes into memory that CUDA pins.
    edit(config / "models" / "mixture.yaml", resources__offload=False, overlong_buffer=8)
    return root


@pytest.fixture
def start(project, cpu_environment):
    """Return a function that starts snakemake on the study."""
    modules = {"VERL_USE_EXTERNAL_MODULES": "cpu_platform,cpu_vllm,cpu_megatron,coin_reward"}

    def start(log):
        return subprocess.Popen(
            [sys.executable, "-m", "snakemake", "--config", "study=cpu", "--cores", "1"],
            cwd=project,
            env=cpu_environment | modules,
            stdout=log,
            stderr=subprocess.STDOUT,
        )

    return start


def is_trainer(pid):
    try:
        return b"respo.training.verl\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def updates_in(run):
    try:
        return len((run / update_log.FILE).read_text().splitlines())
    except FileNotFoundError:
        return 0


def test_a_study_on_a_cpu(tmp_path, project, start):
    results, log = project / "results" / "cpu", tmp_path / "log"
    runs = {"dense": "respo", "mixture": "respo-r3"}
    folders = {m: results / m / name / f"N{STALENESS}" / "seed1" for m, name in runs.items()}
    with log.open("w") as output:
        # The first trainer is killed after the checkpoint of its first rollout batch.
        process = start(output)
        while process.poll() is None and not any(
            updates_in(run) > STALENESS for run in folders.values()
        ):
            time.sleep(0.05)
        assert process.poll() is None, log.read_text()[-6000:]
        for pid in filter(is_trainer, descendants(process.pid)):
            os.kill(pid, signal.SIGKILL)
        assert process.wait() == 0 or start(output).wait() == 0, log.read_text()[-6000:]
    assert "continues after update 2" in log.read_text()
    for model, run in folders.items():
        train = json.loads((run / "train.json").read_text())
        assert (train["update"], list(train["checkpoints"])) == (UPDATES, ["2", str(UPDATES)])
        metrics = read_parquet(run / "metrics.parquet")
        assert metrics["update"].to_pylist() == list(range(1, UPDATES + 1)), model
        cell = json.loads((run / f"eval/{UPDATES}/chain-easy/cell.json").read_text())
        assert (cell["model"], cell["method"], cell["update"]) == (model, runs[model], UPDATES)
        assert cell["responses"] == PROBLEMS * SAMPLES
        assert cell["made_from"]["checkpoint_sha256"] == train["checkpoints"][str(UPDATES)]
    baseline = results / "dense" / "baseline" / "N0" / "seed0" / "eval" / "0" / "chain-easy"
    assert json.loads((baseline / "cell.json").read_text())["responses"] == PROBLEMS * SAMPLES
    table = (results / "tables" / "respo" / "table1.md").read_text()
    rows = [line.split("|")[1:4] for line in table.splitlines() if line.startswith("| ")]
    assert [[cell.strip() for cell in row] for row in rows[2:5]] == [
        ["dense", "", "as it comes"],
        ["dense", "2", "ReSPO"],
        ["mixture", "2", "ReSPO + R3"],
    ]
    assert "Incomplete" not in table
