"""What is asked of Slurm, and what its answers lead to, with programs of its names that say so."""

import os

import pytest

from respo import slurm
from respo.cli import UserError
from respo.config.schema import Cluster


def cluster(**changes):
    known = {"account": "mine", "partition": "cpu", "gpu_partition": "gpu", "gpu_type": "h100"}
    return Cluster(**{**known, "gpus_per_node": 8, **changes})


def test_a_small_job_has_account_and_partition():
    assert slurm.request(cluster()) == {"slurm_account": "mine", "slurm_partition": "cpu"}
    assert slurm.request(cluster(account="none", partition=None)) == {}


def test_a_job_that_takes_all_gpus_has_its_nodes_for_itself():
    # Found out on a real cluster: a process on the first node alone, and GPUs on each.
    whole = {
        "slurm_account": "mine",
        "slurm_partition": "gpu",
        "cards": 8,
        "nodes": 1,
        "gres": "gpu:h100:8",
        "mpi": "",
        "slurm_extra": "--ntasks-per-node=1 --exclusive",
    }
    assert slurm.request(cluster(), 1, 8) == whole
    assert slurm.request(cluster(), 4, 8) == whole | {"cards": 32, "nodes": 4}
    # Ray of several nodes needs them for itself, however few GPUs it has on each.
    assert slurm.request(cluster(), 2, 4)["slurm_extra"] == "--ntasks-per-node=1 --exclusive"


def test_a_job_with_some_gpus_leaves_the_others():
    assert slurm.request(cluster(gpu_type=None, gpu_partition=None), 1, 2) == {
        "slurm_account": "mine",
        "cards": 2,
        "nodes": 1,
        "gres": "gpu:2",
        "mpi": "",
        "cpus_per_task": 16,
    }


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Return a function that puts a shell script in place of one of Slurm's programs."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)

    def make(name, script):
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    return make


def test_the_account_must_be_said(program, tmp_path):
    program("sacctmgr", "printf 'papers\\nphysics\\npapers\\n'")
    path = tmp_path / "cluster.yaml"
    with pytest.raises(UserError, match=r"cluster.yaml: account: is null.*\(papers, physics\).*or"):
        slurm.check_cluster(path, cluster(account=None), {})
    program("sacctmgr", "exit 1")
    with pytest.raises(UserError, match="`sacctmgr show associations` lists yours"):
        slurm.check_cluster(path, cluster(account=None), {})
    for account in ("none", "papers"):
        slurm.check_cluster(path, cluster(account=account), {"large": 8})


def test_a_node_must_have_the_gpus_of_a_job(tmp_path):
    with pytest.raises(UserError, match=r"models/large.yaml: resources: 8 GPUs.*gpus_per_node: 4"):
        slurm.check_cluster(tmp_path, cluster(gpus_per_node=4), {"small": 4, "large": 8})


def test_jobs_that_a_killed_snakemake_left(program, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    lines = [
        f"5|RUNNING|{tmp_path}|rule_train_verl_wildcards_dense_respo_8_1",
        f"6|PENDING|{tmp_path}/link|group_cells",
        f"7|RUNNING|{tmp_path}|(null)",
        "8|RUNNING|/elsewhere|rule_train_verl",
    ]
    program("squeue", "cat <<END\n" + "\n".join(lines) + "\nEND")
    assert slurm.jobs_of(tmp_path) == [
        slurm.Job("5", "running", "train_verl dense_respo_8_1"),
        slurm.Job("6", "pending", "cells"),
    ]
    with pytest.raises(UserError) as error:
        slurm.check_left_behind(tmp_path)
    assert str(error.value).splitlines()[1:] == [
        "  5 (running): train_verl dense_respo_8_1",
        "  6 (pending): cells",
        "Start again when they have ended; to end them now, which loses what they did since their "
        "last checkpoint: scancel 5 6",
    ]


@pytest.mark.parametrize("script", ["", "exit 1"])
def test_without_an_answer_there_are_none(program, tmp_path, script):
    program("squeue", script)
    assert slurm.jobs_of(tmp_path) == []
    slurm.check_left_behind(tmp_path)
