"""What Slurm is told of a job, and what it knows of the jobs of a project folder."""

import getpass
import os
import subprocess
from pathlib import Path
from typing import NamedTuple

from respo.cli import UserError
from respo.config.schema import Cluster

# Jobs that leave GPUs of their node to others take so many processors for each of theirs.
CPUS_PER_GPU = 8
NO_ACCOUNT = "none"


def request(cluster: Cluster, nodes: int = 1, gpus_per_node: int = 0) -> dict[str, int | str]:
    """Return the resources, as Snakemake's executor for Slurm names them, of one job.

    The executor starts a job that has `mpi` in the batch step, on the first node, with all that the
    job has there; without it the job is locked into a step of one node.

    Args:
        cluster: `config/cluster.yaml`.
        nodes: nodes of the job.
        gpus_per_node: GPUs of each node; 0 for a job that needs none.

    Returns:
        The resources; `cards` is the number of GPUs, for Snakemake's own limit on one machine.
    """
    partition = cluster.gpu_partition if gpus_per_node else cluster.partition
    account = None if cluster.account == NO_ACCOUNT else cluster.account
    told = {"slurm_account": account, "slurm_partition": partition}
    resources: dict[str, int | str] = {key: value for key, value in told.items() if value}
    if not gpus_per_node:
        return resources
    words = ["gpu", cluster.gpu_type, str(gpus_per_node)]
    resources |= {
        "cards": nodes * gpus_per_node,
        "nodes": nodes,
        "gres": ":".join(word for word in words if word),
        "mpi": "",
    }
    if nodes > 1 or gpus_per_node >= cluster.gpus_per_node:
        # All processors too, and no other job's Ray beside its own.
        return resources | {"slurm_extra": "--ntasks-per-node=1 --exclusive"}
    return resources | {"cpus_per_task": CPUS_PER_GPU * gpus_per_node}


def check_cluster(path: Path, cluster: Cluster, gpus_per_node: dict[str, int]) -> None:
    """Raise UserError if jobs cannot be started with what `config/cluster.yaml` says.

    Args:
        path: that file, for the message.
        cluster: its content.
        gpus_per_node: GPUs on each node that a job of a model takes, by model.
    """
    if cluster.account is None:
        yours = ", ".join(_accounts()) or "`sacctmgr show associations` lists yours"
        raise UserError(
            f"{path}: account: is null; write the account that pays for the jobs ({yours}), or "
            f"{NO_ACCOUNT} if the cluster has no accounts"
        )
    for model, gpus in gpus_per_node.items():
        if gpus > cluster.gpus_per_node:
            raise UserError(
                f"config/models/{model}.yaml: resources: {gpus} GPUs on a node, and {path} says "
                f"gpus_per_node: {cluster.gpus_per_node}; take more nodes, or correct that line"
            )


def _accounts() -> list[str]:
    """Return the user's accounts, none where Slurm does not tell."""
    command = ["sacctmgr", "--noheader", "--parsable2", "show", "associations"]
    answer = _ask(*command, f"user={getpass.getuser()}", "format=account")
    return sorted(set((answer or "").split()))


class Job(NamedTuple):
    """A job in Slurm's queue."""

    number: str
    state: str
    what: str


def jobs_of(folder: Path) -> list[Job]:
    """Return the jobs that a snakemake in this folder has submitted and that have not ended.

    There are none where Slurm is not there or does not answer.
    """
    answer = _ask("squeue", "--noheader", "--user", getpass.getuser(), "--format", "%A|%T|%Z|%k")
    jobs = []
    for line in (answer or "").splitlines():
        number, state, place, comment = line.split("|", 3)
        # Snakemake's executor names rule and wildcards in the comment.
        what, _, wildcards = comment.partition("_wildcards_")
        kind, _, name = what.partition("_")
        if kind in ("rule", "group") and os.path.realpath(place) == os.path.realpath(folder):
            jobs.append(Job(number, state.lower(), f"{name} {wildcards}".strip()))
    return jobs


def check_left_behind(folder: Path) -> None:
    """Raise UserError if jobs that a killed snakemake left in Slurm's queue may still run.

    For a folder in which no other snakemake is alive.
    """
    jobs = jobs_of(folder)
    if not jobs:
        return
    lines = [f"  {job.number} ({job.state}): {job.what}" for job in jobs]
    numbers = " ".join(job.number for job in jobs)
    raise UserError(
        "\n".join(
            [
                "Slurm still has jobs of this folder, which a snakemake that was killed left:",
                *lines,
                "Start again when they have ended; to end them now, which loses what they did "
                f"since their last checkpoint: scancel {numbers}",
            ]
        )
    )


def _ask(*command: str) -> str | None:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=60
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
