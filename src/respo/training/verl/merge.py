"""`python -m respo.training.verl.merge --run RUN --update U --weights INITIAL`: one checkpoint.

Makes RUN/checkpoints/U, in Hugging Face's format, out of the state that verl has saved after this
update, and notes its hash in RUN/verl/merged/U.json. The weights are bfloat16, which vLLM sampled
with in training.

- The FSDP engine saves a file for each rank; verl's own model merger puts them together, on the
  CPU. It unpickles these files, which is why only those of this very run are ever given to it.
- The Megatron engine has verl's mbridge write Hugging Face's format itself, whatever the
  parallelism; these files are copied.

The tokenizer's files and `generation_config.json` are those of the initial weights: training does
not change them. `config.json` is verl's. What comes out is compared with the initial weights
(`respo.training.verl.check_weights`) before it appears under its name.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

import torch

from respo.cli import UserError, command
from respo.config import load_run_config
from respo.config.schema import RunConfig, VerlPolicy
from respo.files import read_json, sha256_of, write_record
from respo.policy.checkpoint import atomic_folder
from respo.training.verl.check_weights import check_trained
from respo.training.verl.options import Paths
from respo.training.verl.states import state
from respo.weight_files import INDEX, policy_hash, weight_files, write_sums

# What of a checkpoint training does not change.
UNCHANGED = (
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "chat_template.json",
)
THREADS = 4


def merge(run: Path, config: RunConfig, update: int, weights: Path) -> str:
    """Make one checkpoint; return the hash of its weights.

    Args:
        run: the run folder.
        config: its configuration.
        update: the policy update after which verl has saved the state.
        weights: the initial weights.

    Raises:
        UserError: the state cannot be merged, or what comes out cannot be right.
        OSError: something cannot be written.
    """
    assert isinstance(config.model, VerlPolicy)
    paths = Paths(run, weights)
    actor = state(paths.checkpoints, update // config.staleness) / "actor"
    with atomic_folder(merged(run, update)) as new:
        if config.model.engine == "fsdp":
            _merge_shards(actor, new, run / "verl" / "merge.log")
        else:
            _copy_weights(actor / "model" / "huggingface", new)
        _keep_weights(new)
        for name in UNCHANGED:
            if (weights / name).is_file():
                shutil.copyfile(weights / name, new / name)
        check_trained(new, weights, config.training.optimizer, update)
        hashes = {path: sha256_of(path) for path in new.iterdir()}
        sha256 = policy_hash(new, hashes.__getitem__)
        write_sums(new, hashes.__getitem__)
    write_record(record(run, update), {"weights_sha256": sha256})
    return sha256


def merged(run: Path, update: int) -> Path:
    """Return the folder of a checkpoint for evaluation."""
    return run / "checkpoints" / str(update)


def record(run: Path, update: int) -> Path:
    """Return the file that says that a checkpoint is merged."""
    return run / "verl" / "merged" / f"{update}.json"


def merged_hash(run: Path, update: int) -> str | None:
    """Return the hash of a checkpoint's weights; None if it is yet to be merged."""
    path = record(run, update)
    if not path.is_file() or not merged(run, update).is_dir():
        return None
    try:
        sha256: str = read_json(path)["weights_sha256"]
    except (UserError, KeyError, TypeError):  # damaged: it is merged again
        return None
    return sha256


def _merge_shards(actor: Path, new: Path, log: Path) -> None:
    """Run verl's model merger; what it says goes to `log`."""
    merger = [sys.executable, "-m", "verl.model_merger", "merge", "--backend", "fsdp"]
    with log.open("wb") as output:
        code = subprocess.run(
            [*merger, "--local_dir", str(actor), "--target_dir", str(new)],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=os.environ | {"CUDA_VISIBLE_DEVICES": ""},
        ).returncode
    if code:
        raise UserError(
            f"{actor}: verl's model merger failed with exit code {code}; {log} says why. The state "
            "is kept; start the run again once the reason is mended."
        )


def _copy_weights(saved: Path, new: Path) -> None:
    names = ["config.json", *(path.name for path in weight_files(saved))]
    if (saved / INDEX).is_file():
        names.append(INDEX)
    for name in names:
        try:
            shutil.copyfile(saved / name, new / name)
        except FileNotFoundError:
            raise UserError(f"{saved / name}: no such file; verl has not saved it") from None


def _keep_weights(new: Path) -> None:
    """Delete what is neither weights nor `config.json`."""
    kept = {"config.json", INDEX, *(path.name for path in weight_files(new))}
    for path in new.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in kept:
            path.unlink()


@command
def main() -> None:
    """Parse the command line and merge."""
    parser = argparse.ArgumentParser(
        prog="python -m respo.training.verl.merge",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--run", type=Path, required=True, help="run folder, with config.yaml")
    parser.add_argument("--update", type=int, required=True, help="the checkpoint")
    parser.add_argument("--weights", type=Path, required=True, help="folder of the initial weights")
    options = parser.parse_args()
    torch.set_num_threads(min(THREADS, os.cpu_count() or 1))
    config = load_run_config(options.run / "config.yaml")
    merge(options.run, config, options.update, options.weights)
    print(f"{options.run}: checkpoint {options.update} is merged and checked", flush=True)


if __name__ == "__main__":
    main()
