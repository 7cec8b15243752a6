"""What README says of a cluster and of a machine with GPUs, as far as it goes without either."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from snakemake.api import SnakemakeApi
from snakemake.settings.types import (
    ConfigSettings,
    DAGSettings,
    OutputSettings,
    Quietness,
    ResourceSettings,
)

ROOT = Path(__file__).parents[2]
RUN = "results/respo/qwen3-30b-a3b-base/respo/N32/seed1"

# snakemake leaves its own files and event loops open.
pytestmark = [pytest.mark.integration, pytest.mark.filterwarnings("ignore")]


@pytest.fixture
def snakemake(tmp_path):
    """Return a function that starts snakemake where it finds no program of Slurm's."""
    (tmp_path / "bin").mkdir()
    for name in ("which", "sh", "bash", "git"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))

    def start(*arguments):
        return subprocess.run(
            [Path(sys.executable).with_name("snakemake"), *arguments],
            cwd=ROOT,
            capture_output=True,
            text=True,
            env=os.environ | {"PATH": str(tmp_path / "bin")},
        )

    return start


@pytest.mark.parametrize("profile", ["slurm", "profiles/single-node"])
def test_what_would_run_is_shown_without_slurm_and_gpus(snakemake, tmp_path, profile):
    config = ["--config", "study=respo", f"results={tmp_path}/results"]
    target = f"{tmp_path}/{RUN}/train.json"
    done = snakemake("--dry-run", "--profile", profile, *config, "--", target)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in (done.stdout + done.stderr).splitlines()]
    assert ["train_verl", "1"] in rows
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [f"{RUN}/train.json"],
            "is of study 'respo', and this is 'tiny'; put --config study=respo",
        ),
        (
            ["--config", "study=respo", 'verl_overrides=["actor_rollout_ref.rollout.n=4"]'],
            "verl_overrides: 'actor_rollout_ref.rollout.n=4': actor_rollout_ref.rollout.n follows",
        ),
    ],
)
def test_what_is_refused_before_anything_starts(snakemake, arguments, message):
    done = snakemake("--dry-run", *arguments)
    assert done.returncode == 1
    assert message in done.stdout + done.stderr


def test_what_slurm_is_asked_for(tmp_path):
    asked = {}
    quiet = OutputSettings(dryrun=True, quiet={Quietness.ALL})
    with SnakemakeApi(quiet) as api:
        workflow = api.workflow(
            resource_settings=ResourceSettings(cores=1),
            config_settings=ConfigSettings(config={"study": "respo"}),
            snakefile=ROOT / "Snakefile",
            workdir=tmp_path,
        )
        dag = workflow.dag(dag_settings=DAGSettings(targets={f"{RUN}/eval/1024/aime25/cell.json"}))
        dag.execute_workflow(executor="dryrun")
        for job in workflow._workflow.dag.needrun_jobs(exclude_finished=False):
            # Jobs on the login node are not asked for anything.
            if not job.is_norun and job.rule.name not in workflow._workflow._localrules:
                asked[job.rule.name] = {
                    key: job.resources.get(key)
                    for key in ("cards", "nodes", "gres", "mpi", "slurm_extra", "cpus_per_task")
                }
    whole = "--ntasks-per-node=1 --exclusive"
    nothing = dict.fromkeys(asked["train_verl"])
    assert asked == {
        "train_verl": nothing
        | {"cards": 8, "nodes": 1, "gres": "gpu:8", "mpi": "", "slurm_extra": whole},
        "generate_vllm": nothing
        | {"cards": 4, "nodes": 1, "gres": "gpu:4", "mpi": "", "cpus_per_task": 32},
        "score": nothing,
        "cell": nothing,
    }
