"""`python -m respo.training.local --config RUN/config.yaml --initial WEIGHTS --data TRAIN.parquet`.

Trains the run whose folder holds the configuration. It can be stopped or killed at any moment and
started again: it continues, and the result is the same. Written at the end: ``metrics.parquet``,
``branches.parquet`` and, last, ``train.json``.
"""

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

import torch

from respo.cli import UserError, command
from respo.config import load_run_config
from respo.config.schema import RunConfig
from respo.environment import environment
from respo.files import read_json, sha256_of, write_record
from respo.parquet import write_parquet
from respo.policy import Policy
from respo.training.local.device import check_device, device_name, peak_memory_mb
from respo.training.local.initial import load_initial
from respo.training.local.interrupt import Interrupt
from respo.training.local.metrics import branches_table, metrics_table
from respo.training.local.prompts import load_prompts
from respo.training.local.trainer import PACKAGES, Trainer, is_intact, states
from respo.training.lock import exclusive
from respo.training.objective import check_objective
from respo.training.outputs import TABLES, table_hashes, tables_are_whole
from respo.training.starts import now


@command
def main() -> None:
    """Parse the command line and train."""
    interrupt = Interrupt()
    parser = argparse.ArgumentParser(prog="python -m respo.training.local", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="config.yaml in the run folder")
    parser.add_argument("--initial", type=Path, required=True, help="folder of initial weights")
    parser.add_argument("--data", type=Path, required=True, help="training set (Parquet)")
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda or cuda:1")
    options = parser.parse_args()
    config = load_run_config(options.config)
    check_objective(config, options.config)
    check_device(options.device)
    # One thread: runs are many and small, and side by side they use all cores.
    torch.set_num_threads(1)
    run = options.config.parent
    policy, initial_sha256 = load_initial(options.initial, options.device)
    identity = {
        "config_sha256": sha256_of(options.config),
        "data_sha256": sha256_of(options.data),
        "initial_sha256": initial_sha256,
    }

    def tell_waiting(holder: str) -> None:
        print(f"{run}: is being trained by {holder}; waiting for it", file=sys.stderr)

    def leave_if_asked() -> None:
        interrupt.stop(f"{run}: stopped waiting")

    with exclusive(run / ".lock", tell_waiting, leave_if_asked):
        if is_finished(run, config, policy, identity):
            print(f"{run}: is trained already", file=sys.stderr)
        else:
            train(run, config, policy, identity, options, interrupt)
        # Nothing to continue any more: started without its outputs, the run is trained anew.
        shutil.rmtree(states(run), ignore_errors=True)


def train(
    run: Path,
    config: RunConfig,
    policy: Policy,
    identity: dict[str, str],
    options: argparse.Namespace,
    interrupt: Interrupt,
) -> None:
    """Train from the newest state on and write the results.

    Raises:
        UserError: training ended elsewhere than at the last update.
    """
    prompts = load_prompts(options.data, policy.tokenizer, config.model.max_prompt_tokens)
    if prompts.dropped:
        print(
            f"{options.data}: {prompts.dropped} prompts are longer than "
            f"{config.model.max_prompt_tokens} tokens and were dropped",
            file=sys.stderr,
        )
    trainer = Trainer(run, config, policy, prompts, identity)
    trainer.train(interrupt)
    if trainer.update != config.training.updates:
        raise UserError(
            f"{run}: training ended at update {trainer.update} instead of "
            f"{config.training.updates}; delete {states(run)} and start again"
        )
    metrics = metrics_table(trainer.metrics)
    branches = branches_table(trainer.metrics, trainer.branches_USKN)
    write_parquet(run / "metrics.parquet", metrics, identity)
    write_parquet(run / "branches.parquet", branches, identity)
    write_record(
        run / "train.json",
        {
            "update": trainer.update,
            **identity,
            "checkpoints": trainer.checkpoints,
            "outputs": table_hashes(run),
            "prompts": len(prompts.rows),
            "prompts_dropped": prompts.dropped,
            "tokens_generated": trainer.tokens,
            "seconds": trainer.seconds,
            "restarts": trainer.restarts,
            "device": device_name(options.device),
            "peak_memory_mb": peak_memory_mb(options.device),
            "versions": environment(*PACKAGES),
            "starts": trainer.starts,
            "ended": now(),
        },
    )


def is_finished(run: Path, config: RunConfig, policy: Policy, identity: dict[str, str]) -> bool:
    """Tell whether all results of a whole training from the same inputs are there.

    ``policy`` holds the initial weights.
    """
    if not all((run / name).is_file() for name in ("train.json", *TABLES)):
        return False
    expected = {**identity, "update": config.training.updates}
    try:
        found = read_json(run / "train.json")
        same = {key: found[key] for key in expected} == expected
        whole = tables_are_whole(run, found)
        checkpoints: dict[str, Any] = dict(found["checkpoints"])
    except (UserError, KeyError, TypeError, ValueError):  # damaged, or of another shape
        return False
    kept = {str(update) for update in config.training.checkpoints}
    return (
        same
        and whole
        and checkpoints.keys() == kept
        and all(is_intact(run / "checkpoints" / u, checkpoints[u], policy) for u in kept)
    )


if __name__ == "__main__":
    main()
