"""Two runs in verl's own trainer on a CPU, made by Snakemake and killed once, for all tests here.

Rollouts by vLLM, our objective and our launcher: a dense model with FSDP, and a mixture of experts
with Megatron and replay of routes (R3). Of the second, vLLM is made to tell other experts than it
has used (`false_routes.py`), which shows whether Megatron uses what it is told.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from respo.training.verl import update_log
from respo.training.verl.processes import descendants

# The plugin joins these by itself.
MODULES = "cpu_platform,cpu_vllm,cpu_megatron,false_routes,coin_reward,record_updates"
UPDATES, STALENESS, PROMPTS, GROUP, PROBLEMS, SAMPLES = 8, 2, 4, 4, 6, 2
STUDY = {
    "title": "Two models on a CPU",
    "methods": ["respo"],
    "models": ["dense"],
    "staleness": [STALENESS],
    "seeds": [1],
    "extra_runs": [{"methods": ["respo-r3"], "models": ["mixture"], "staleness": [STALENESS]}],
    "baselines": ["dense"],
    "updates": UPDATES,
    "mini_batch": PROMPTS,
    "rollouts_per_prompt": GROUP,
    "temperature": 1.0,
    "loss_aggregation": "token-mean",
    "optimizer": {
        "learning_rate": 1e-3,
        "warmup_updates": 0,
        "betas": [0.9, 0.95],
        "weight_decay": 0.1,
        "gradient_clip": 1.0,
    },
    "checkpoints": [STALENESS, UPDATES],
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
MODELS = {"dense": "qwen3-1.7b-base", "mixture": "qwen3-30b-a3b-base"}
METHODS = {"dense": "respo", "mixture": "respo-r3"}


def edit(path, **changes):
    values = yaml.safe_load(path.read_text())
    for key, value in changes.items():
        *outer, last = key.split("__")
        target = values
        for part in outer:
            target = target[part]
        target[last] = value
    path.write_text(yaml.safe_dump(values))


@pytest.fixture(scope="session")
def project(mini, tmp_path_factory, cpu_options, megatron_options, save_tiny_model):
    """A copy of the project with a study of two tiny models for verl."""
    root = tmp_path_factory.mktemp("verl") / "project"
    config = mini.copy_project(root)
    (config / "studies" / "cpu.yaml").write_text(yaml.safe_dump(STUDY))
    edit(config / "datasets" / "chain.yaml", operators=[1, 2], rows=40)
    edit(config / "benchmarks" / "chain-easy.yaml", operators=[1, 2], rows=PROBLEMS)
    for name, like in MODELS.items():
        save_tiny_model(root.parent / name, mixture_of_experts=name == "mixture")
        model = config / "models" / f"{name}.yaml"
        shutil.copy(config / "models" / f"{like}.yaml", model)
        edit(
            model,
            label=name,
            checkpoint={"path": str(root.parent / name)},
            max_prompt_tokens=16,
            max_response_tokens=24,
            resources__gpus_per_node=1,
            resources__parallelism={},
            resources__tokens_per_gpu=256,
            resources__silent_minutes=5,
            resources__stuck_minutes=8,
            resources__verl_overrides=cpu_options if name == "dense" else megatron_options,
        )
    edit(config / "models" / "dense.yaml", master_weights="fp32")
    # What goes into memory that CUDA pins.
    edit(config / "models" / "mixture.yaml", resources__offload=False, overlong_buffer=8)
    return root


@pytest.fixture(scope="session")
def start(project, cpu_environment):
    """Return a function that starts a module of Python in the project."""
    environment = cpu_environment | {"VERL_USE_EXTERNAL_MODULES": MODULES}

    def start(log, module, *arguments):
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=project,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )

    return start


@pytest.fixture(scope="session")
def study(project, start):
    """Make the study, in which both trainers are killed once; return what there is to look at."""
    results, log = project / "results" / "cpu", project.parent / "log"
    models = {}
    for name, method in METHODS.items():
        models[name] = SimpleNamespace(
            method=method,
            run=results / name / method / f"N{STALENESS}" / "seed1",
            initial=project.parent / name,
            killed=project.parent / "killed" / name,
        )
    # Both at a time: a trainer starts many programs one after the other.
    command = ["snakemake", "--config", "study=cpu", "--cores", "2"]
    with log.open("w") as output:
        process = start(output, *command)
        runs = [model.run.relative_to(project) for model in models.values()]
        started = kill_trainers(process, project, runs)
        assert not runs, log.read_text()[-6000:]
        assert process.wait() == 1
        wait_for_end(started)
        for model in models.values():
            # What the next start goes on from, and what the first has trained on.
            shutil.copytree(model.run / "verl" / "checkpoints", model.killed / "checkpoints")
            (model.run / "records").rename(model.killed / "records")
        assert start(output, *command).wait() == 0, log.read_text()[-6000:]
    return SimpleNamespace(
        results=results,
        log=log.read_text(),
        models=models,
        updates=UPDATES,
        staleness=STALENESS,
        responses=PROMPTS * GROUP,
        evaluated=PROBLEMS * SAMPLES,
    )


def kill_trainers(snakemake, project, runs):
    """Kill our program in each run in the second of four rollout batches, and strike the run off.

    Returns the processes that they had started.
    """
    started = []
    while runs and snakemake.poll() is None:
        for run in [run for run in runs if updates_in(project / run) > STALENESS]:
            trainer = next(pid for pid in descendants(snakemake.pid) if is_trainer(pid, run))
            started += descendants(trainer)
            os.kill(trainer, signal.SIGKILL)
            runs.remove(run)
        time.sleep(0.05)
    return started


def updates_in(run):
    try:
        return len((run / update_log.FILE).read_text().splitlines())
    except FileNotFoundError:
        return 0


def is_trainer(pid, run):
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False
    return f"-m\0respo.training.verl\0--config\0{run}/config.yaml\0" in words


def wait_for_end(processes):
    until = time.monotonic() + 60
    while any(Path(f"/proc/{each}/cmdline").exists() for each in processes):
        assert time.monotonic() < until
        time.sleep(0.2)
