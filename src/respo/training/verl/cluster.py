"""A command on the first node of a Slurm job, with Ray on all of them.

`ray symmetric-run`, started once on each node, starts Ray there, waits until all nodes have joined,
runs the command on the first and stops Ray. It refuses a node on which Ray runs, and stops all of
the node's Ray: jobs of more than one node have their nodes for themselves.
"""

import os
import subprocess
import sys
from pathlib import Path

from respo.cli import UserError

JOIN_SECONDS = 600
WAIT = "RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT"
# Below the ports that Ray's workers take, from 10002 on.
PORTS = range(6379, 9379)


def across_nodes(command: list[str], nodes: int) -> list[str]:
    """Return the command that runs `command` with Ray on all nodes of the job.

    With one node that is the command itself: verl starts Ray where there is none.

    Raises:
        UserError: this is no Slurm job, or one with another number of nodes.
    """
    if nodes == 1:
        return command
    job = os.environ.get("SLURM_JOB_ID")
    if not job:
        raise UserError(f"--nodes {nodes} needs a Slurm job; SLURM_JOB_ID is not set")
    # Snakemake removes most of Slurm's variables from a job; its number stays.
    names = _ask("squeue", "--noheader", "--jobs", job, "--format", "%N")
    hosts = _ask("scontrol", "show", "hostnames", names).split()
    if len(hosts) != nodes:
        raise UserError(f"--nodes {nodes}: Slurm job {job} has {len(hosts)}: {' '.join(hosts)}")
    # Of jobs that follow each other on a node, the port of the first may not be free yet.
    port = PORTS[int(job) % len(PORTS)]
    # Slurm may bind a task to one processor; Ray needs all of the node.
    spread = ["--overlap", f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"]
    spread.append("--cpu-bind=none")
    return [
        *("env", f"{WAIT}={JOIN_SECONDS}", "srun", *spread, "--kill-on-bad-exit=1"),
        *(str(Path(sys.executable).with_name("ray")), "symmetric-run"),
        *("--address", f"{hosts[0]}:{port}", "--min-nodes", str(nodes), "--", *command),
    ]


def _ask(*command: str) -> str:
    try:
        return subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=60
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        told = getattr(error, "stderr", None) or error
        raise UserError(f"cannot ask Slurm for the nodes of the job: {str(told).strip()}") from None
