"""Takes verl's options, writes the log of updates and states, and continues from the newest one.

stop: end by SIGKILL after this update, if the start was from scratch.
pause: seconds after each update.
hold: wait after this update, if the start was from scratch, for a file `go` in the run folder.
half: of the state at which it stops, and of the tracker, there is only a beginning.
metrics: the columns of the log.
"""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from respo.training.verl import update_log
from verl import PLAN

options = dict(argument.lstrip("+").split("=", 1) for argument in sys.argv[1:])
staleness = int(options["data.train_batch_size"]) // int(
    options["actor_rollout_ref.actor.ppo_mini_batch_size"]
)
folder = Path(options["trainer.default_local_dir"])
tracker = folder / "latest_checkpointed_iteration.txt"
weights = load_file(Path(options["actor_rollout_ref.model.path"]) / "model.safetensors")
total, save_freq = (
    int(options[f"trainer.{name}"]) for name in ("total_training_steps", "save_freq")
)
run = Path(os.environ["RESPO_RUN_METRICS"])
print("modules", os.environ["VERL_USE_EXTERNAL_MODULES"], flush=True)


def moved(update):
    """The weights after an update: a little of the way that Adam can have gone."""
    return {name: tensor + np.float32(1e-3 * update) for name, tensor in weights.items()}


def append(step, mini_batch):
    unknown = ("update", "reference_kl", "dropped_groups", "tokens_per_second", "seconds")
    row = {name: 0.5 for name in PLAN["metrics"] if name not in unknown}
    branches = {
        kind: [[1.0] * 10, [2.0] * 10] for kind in ("responses", "coefficient_mass", "tokens")
    }
    row |= {"rollout_batch": step, "mini_batch": mini_batch, "responses": 16, "tokens": 160}
    row |= {"branches": branches, "update_seconds": 0.001, "ended": time.time()}
    update_log.append(run, row)


def save(step):
    state = folder / f"global_step_{step}"
    saved = state / "actor" / ("model/huggingface" if options["model_engine"] == "megatron" else "")
    saved.mkdir(parents=True)
    if PLAN.get("half") and step * staleness == PLAN.get("stop"):
        tracker.write_text("")
        return
    save_file(moved(step * staleness), saved / "model.safetensors")
    for name in ("config.json", "tokenizer_config.json"):
        source = Path(options["actor_rollout_ref.model.path"]) / name
        (saved / name).write_bytes(source.read_bytes())
    (state / "data.pt").write_bytes(b"")
    tracker.write_text(str(step))


begin = int(tracker.read_text()) if tracker.exists() else 0
folder.mkdir(parents=True, exist_ok=True)
for step in range(begin + 1, total + 1):
    for mini_batch in range(1, staleness + 1):
        append(step, mini_batch)
        time.sleep(PLAN.get("pause", 0))
        if mini_batch == staleness and (step % save_freq == 0 or step == total):
            save(step)
        update = (step - 1) * staleness + mini_batch
        if begin == 0 and update == PLAN.get("stop"):
            os.kill(os.getpid(), signal.SIGKILL)
        while begin == 0 and update == PLAN.get("hold") and not (run / "go").exists():
            time.sleep(0.1)
