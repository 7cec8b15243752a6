"""`snakemake --profile slurm` on a real cluster of Slurm with GPUs that are none.

A miniature of the ReSPO study: a dense model for FSDP on one node, a mixture of experts for
Megatron on four, and a small one that is trained and evaluated without GPUs. Of all this only
verl's trainer and Ray are stand-ins, which the environments .venv-verl-* of the project hold:
there are no GPUs, and four nodes on one machine cannot each have a Ray. verl itself is tested in
tests/training/verl.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import venv
from pathlib import Path

import pytest
import torch
import yaml

from respo.files import read_json, write_json
from respo.policy import Policy, character_tokenizer, save_policy
from respo.policy.weights import expected_shapes
from respo.training.local.metrics import METRICS
from respo.training.verl.processes import die_with_parent

pytestmark = pytest.mark.slurm

ROOT = Path(__file__).parents[2]
STAND_IN = ROOT / "tests" / "training" / "verl" / "stand_in" / "verl"
NO_MACHINE_FOR_IT = 3
# Seconds.
PATIENCE = 600
STUDY = {
    "title": "Miniature of the ReSPO study",
    "methods": ["respo"],
    "extra_runs": [
        {
            "methods": ["respo"],
            "models": ["dense", "experts"],
            "staleness": [2],
            "updates": 8,
            "evaluate": False,
        }
    ],
    "updates": 16,
    "mini_batch": 4,
    "rollouts_per_prompt": 8,
    "checkpoints": [4, 16],
    "evaluation": {"updates": [16], "temperature": 1.0, "top_p": 0.7, "seed": 0},
}
DENSE, EXPERTS, MINI = (
    f"results/mini/{name}/respo/N2/seed1" for name in ("dense", "experts", "mini")
)
UPDATES = 8
ON_SLURM = ["--profile", "slurm", "--latency-wait", "10"]
ON_SLURM += ["--slurm-init-seconds-before-status-checks", "1"]
# What Ray's program does on each node: wait for the others, run the command on the first.
RAY = """\
#!{python}
import argparse, json, os, pathlib, subprocess, sys, time
assert sys.argv[1] == "symmetric-run"
parser = argparse.ArgumentParser()
parser.add_argument("--address")
parser.add_argument("--min-nodes", type=int)
parser.add_argument("command", nargs="+")
options = parser.parse_args(sys.argv[2:])
node = os.environ["SLURMD_NODENAME"]
folder = pathlib.Path(os.environ["RESPO_RUN_METRICS"], "ray", os.environ["SLURM_JOB_ID"])
folder.mkdir(parents=True, exist_ok=True)
(folder / node).write_text(os.environ["CUDA_VISIBLE_DEVICES"])
while len(list(folder.iterdir())) < options.min_nodes:
    time.sleep(0.1)
if options.address.split(":")[0] == node:
    sys.exit(subprocess.run(options.command).returncode)
"""
CHAT = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster, and the function that asks it."""
    program = Path(__file__).with_name("slurm_cluster.py")
    folder = tmp_path_factory.mktemp("cluster")
    with subprocess.Popen(
        [sys.executable, program, folder, "--accounting"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        line = process.stdout.readline().strip()
        if line != "ready":
            if process.wait() == NO_MACHINE_FOR_IT:
                pytest.skip(line)
            pytest.fail(f"no cluster: {line}")

        def ask(*command):
            return subprocess.run(command, capture_output=True, text=True, check=True).stdout

        yield ask
        process.stdin.close()


def save_model(folder, experts):
    """Random weights of a model that is small enough for anything."""
    config = {
        "architectures": ["Qwen3MoeForCausalLM" if experts else "Qwen3ForCausalLM"],
        "model_type": "qwen3_moe" if experts else "qwen3",
        "vocab_size": 20,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "intermediate_size": 16,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
        "tie_word_embeddings": True,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "bos_token_id": None,
        "dtype": "float32",
    }
    if experts:
        config |= {"num_local_experts": 4, "num_experts_per_tok": 2, "norm_topk_prob": True}
        config |= {"moe_intermediate_size": 8, "mlp_only_layers": []}
    shapes = expected_shapes(config)
    weights = {name: torch.full(shape, 0.1) for name, shape in shapes.items()}
    save_policy(Policy(config, weights, character_tokenizer()), folder)
    tokenizer = read_json(folder / "tokenizer_config.json")
    write_json(folder / "tokenizer_config.json", tokenizer | {"chat_template": CHAT})


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A virtual environment with all of this one's packages, the stand-in for verl, and Ray's."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    outer = next(Path(sys.prefix).glob("lib/python*/site-packages"))
    (packages / "outer.pth").write_text(f"import site; site.addsitedir({str(outer)!r})\n")
    shutil.copytree(STAND_IN, packages / "verl")
    ray = folder / "bin" / "ray"
    ray.write_text(RAY.format(python=folder / "bin" / "python"))
    ray.chmod(0o755)
    return folder


@pytest.fixture
def project(mini, tmp_path, environment):
    return Project(mini, tmp_path / "project", environment)


class Project:
    """A checkout with the study, and ways to start snakemake in it."""

    def __init__(self, mini, folder, environment):
        self.folder = folder
        mini.add_study(mini.copy_project(folder), **STUDY)
        (folder / "slurm").symlink_to("profiles/slurm")
        for name in ("fsdp", "megatron"):
            (folder / f".venv-verl-{name}").symlink_to(environment)
        self.write("cluster", account="papers", gpu_partition="gpu", gpu_type="h100")
        self.copy_model("dense", "qwen3-1.7b-base", parallelism={})
        self.copy_model("experts", "qwen3-30b-a3b-base-4x80gb")

    def write(self, name, **changes):
        """Change keys of a file of config."""
        path = self.folder / "config" / f"{name}.yaml"
        path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | changes))

    def copy_model(self, name, source, **resources):
        save_model(self.folder / "weights" / name, experts=name == "experts")
        models = self.folder / "config" / "models"
        shutil.copy(models / f"{source}.yaml", models / f"{name}.yaml")
        resources |= {"memory_mb": 2000, "minutes": 20}
        self.write(
            f"models/{name}",
            label=name,
            checkpoint={"path": str(self.folder / "weights" / name)},
            max_prompt_tokens=24,
            max_response_tokens=24,
            overlong_buffer=4,
            overlong_factor=1.0,
            resources=self.resources(name) | resources,
        )

    def resources(self, name):
        path = self.folder / "config" / "models" / f"{name}.yaml"
        return yaml.safe_load(path.read_text())["resources"]

    def start(self, *arguments, place=ON_SLURM, **plan):
        """Start snakemake; the plan is for the stand-in of verl's trainer."""
        program = Path(__file__).with_name("watchful_snakemake.py")
        parent = os.getpid()
        return subprocess.Popen(
            [sys.executable, program, "--config", "study=mini", *place, *map(str, arguments)],
            cwd=self.folder,
            preexec_fn=lambda: die_with_parent(parent, signal.SIGKILL),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=os.environ
            | {"OMP_NUM_THREADS": "1", "STAND_IN": json.dumps(plan | {"metrics": METRICS})},
        )

    def run(self, *arguments, place=ON_SLURM, **plan):
        """Start snakemake and return its exit code and output."""
        with self.start(*arguments, place=place, **plan) as process:
            try:
                output, _ = process.communicate(timeout=PATIENCE)
            finally:
                process.kill()
        return process.returncode, output

    def updates(self, run):
        """Return the numbers of the updates that trainers of the run have logged."""
        path = self.folder / run / "updates.jsonl"
        rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [2 * (row["rollout_batch"] - 1) + row["mini_batch"] for row in rows]

    def wait_for_update(self, run, update, process):
        """Wait until a trainer has logged it; return Slurm's number of its job."""
        until = time.monotonic() + PATIENCE
        while update not in self.updates(run):
            assert process.poll() is None, process.stdout.read()
            assert time.monotonic() < until
            time.sleep(0.1)
        return re.search(r"Slurm job (\d+)", (self.folder / run / ".lock").read_text())[1]

    def check_trained(self, run):
        train = read_json(self.folder / run / "train.json")
        assert train["update"] == UPDATES
        assert set(train["checkpoints"]) == {"4", "8"}
        # One driver: two would have written each update twice.
        assert self.updates(run) == list(range(1, UPDATES + 1))


@pytest.fixture(scope="module")
def begun(mini, cluster, environment, tmp_path_factory):
    """First starts of the stories below, side by side: Slurm's clock is slow."""
    stories = {}
    for name, arguments, plan in (
        ("fails", ["--retries", 0], {"merge": "fails"}),
        ("lasts too long", ["--retries", 0], {"hold": 1}),
        ("is cancelled", ["--retries", 0], {"hold": 5}),
        ("is left alone", [], {"hold": 1}),
    ):
        project = Project(mini, tmp_path_factory.mktemp("story") / "project", environment)
        if name == "lasts too long":
            project.write("models/dense", resources=project.resources("dense") | {"minutes": 1})
        stories[name] = project, project.start(f"{DENSE}/train.json", *arguments, **plan)
    yield stories
    for _, process in stories.values():
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_job_is_cancelled(cluster, begun):
    project, process = begun["is cancelled"]
    job = project.wait_for_update(DENSE, 5, process)
    cluster("scancel", job)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert f"SLURM-job '{job}' failed, SLURM status is: 'CANCELLED'" in output

    code, output = project.run(f"{DENSE}/train.json")
    assert code == 0, output
    project.check_trained(DENSE)
    log = (project.folder / "results/mini/logs/train/dense/respo/N2/seed1.log").read_text()
    assert "continues after update 4" in log


def test_snakemake_is_killed(cluster, begun):
    project, process = begun["is left alone"]
    job = project.wait_for_update(DENSE, 1, process)
    process.kill()

    code, output = project.run(f"{DENSE}/train.json")
    assert code == 1
    assert (
        "error: Slurm still has jobs of this folder, which a snakemake that was killed left:\n"
        f"  {job} (running): train_verl dense_respo_2_1\n"
        "Start again when they have ended; to end them now, which loses what they did since their "
        f"last checkpoint: scancel {job}\n"
    ) in output
    dry, output = project.run("--dry-run", f"{DENSE}/train.json")
    assert dry == 0, output
    (project.folder / DENSE / "go").touch()
    while cluster("squeue", "--noheader", "--jobs", job).strip():
        time.sleep(1)
    project.check_trained(DENSE)
    before = (project.folder / DENSE / "train.json").stat().st_mtime_ns

    code, output = project.run(f"{DENSE}/train.json")
    assert code == 0, output
    project.check_trained(DENSE)
    assert (project.folder / DENSE / "train.json").stat().st_mtime_ns == before


def test_a_job_fails(cluster, begun):
    project, process = begun["fails"]
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "verl's model merger failed with exit code 1" in output

    code, output = project.run(f"{DENSE}/train.json")
    assert code == 0, output
    project.check_trained(DENSE)


def test_a_study(cluster, project):
    # What comes before, on this machine: where it is done changes nothing of what is made from it.
    generations = [f"{MINI}/eval/16/{name}/generations.parquet" for name in ("easy", "hard")]
    code, output = project.run(*generations, place=["--cores", "2"])
    assert code == 0, output
    code, output = project.run()
    assert code == 0, output
    project.check_trained(DENSE)
    project.check_trained(EXPERTS)
    for name in ("tables/respo/table1.md", "report.html"):
        assert (project.folder / "results/mini" / name).exists()
    assert "rule_generate" not in output

    columns = "Comment,Account,Partition,AllocNodes,AllocTRES,State"
    told = cluster("sacct", "--allocations", "--noheader", "--parsable2", f"--format={columns}")
    jobs = {}
    for line in told.splitlines():
        comment, account, *rest = line.split("|")
        assert account == "papers", line
        jobs[comment.split("_wildcards_")[-1]] = rest
    partition, nodes, got, state = jobs["experts_respo_2_1"]
    assert (partition, nodes, state) == ("gpu", "4", "COMPLETED")
    assert "gres/gpu:h100=32" in got.split(",")
    # Ray was started once on each node, with its eight GPUs; check_trained saw one trainer.
    started = list((project.folder / EXPERTS / "ray").glob("*/*"))
    assert {path.name for path in started} == {f"gpu{number}" for number in range(1, 5)}
    assert {path.read_text() for path in started} == {"0,1,2,3,4,5,6,7"}
    partition, nodes, got, state = jobs["dense_respo_2_1"]
    assert (partition, nodes, state) == ("gpu", "1", "COMPLETED")
    assert {"gres/gpu:h100=8", "cpu=32"} < {*got.split(",")}
    # On the partition without GPUs: all benchmarks scored in one job, all else a job of its own.
    small = {"cells_cell_score", "table_respo_table1", "figure_respo_fig3", "explore", "report"}
    assert jobs.keys() == {"dense_respo_2_1", "experts_respo_2_1", *(f"rule_{n}" for n in small)}
    for name in small:
        partition, nodes, got, state = jobs[f"rule_{name}"]
        assert (partition, nodes, state) == ("cpu", "1", "COMPLETED")
        assert "gres" not in got


# Last, as it waits for Slurm's clock.
def test_a_job_lasts_too_long(cluster, begun):
    project, process = begun["lasts too long"]
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "failed, SLURM status is: 'TIMEOUT'" in output

    project.write("models/dense", resources=project.resources("dense") | {"minutes": 20})
    code, output = project.run(f"{DENSE}/train.json")
    assert code == 0, output
    project.check_trained(DENSE)
