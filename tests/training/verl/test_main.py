"""A run from its start to its results, with a stand-in for verl (`stand_in`)."""

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import yaml

from respo import objectives
from respo.files import read_json, write_json
from respo.parquet import made_from, read_parquet
from respo.policy import load_policy, policy_hash, save_policy
from respo.training.local.metrics import METRICS
from respo.training.verl import update_log

STAND_IN = Path(__file__).parent / "stand_in"
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
UPDATES, STALENESS = 8, 2
DENSE, MOE = "qwen3-1.7b-base", "qwen3-30b-a3b-base"


class Process:
    """A start of the program, by `starter`."""

    def __init__(self, starter, arguments, environment, log):
        self.log = log
        start = {"arguments": arguments, "environment": environment, "log": str(log)}
        starter.stdin.write(json.dumps(start) + "\n")
        starter.stdin.flush()
        self.pid = int(starter.stdout.readline())

    def runs(self):
        return Path(f"/proc/{self.pid}").exists()

    def end(self):
        """Wait for the end; return the exit code, None if it was killed, and what it has said."""
        until = time.monotonic() + 120
        while self.runs():
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.02)
        code = Path(f"{self.log}.code")
        return int(code.read_text()) if code.exists() else None, self.log.read_text()

    def wait_until(self, there):
        """Wait until a condition holds while it runs."""
        while not there():
            assert self.runs(), self.log.read_text()
            time.sleep(0.02)


@pytest.fixture(scope="module")
def starter():
    path = Path(__file__).with_name("starter.py")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, path], text=True, **pipes) as process:
        yield process
        process.stdin.close()


class Start:
    """Starts the run in the folder `run`; the plan is for the stand-in."""

    def __init__(self, run, starter, arguments):
        self.run = run
        self.starter = starter
        self.arguments = [str(argument) for argument in arguments]

    def begin(self, *options, **plan):
        environment = {
            "PYTHONPATH": str(STAND_IN),
            "STAND_IN": json.dumps(plan | {"metrics": METRICS}),
            "VERL_USE_EXTERNAL_MODULES": "mine",
        }
        log = self.run.parent / f"log{len(list(self.run.parent.glob('log*')))}"
        return Process(self.starter, [*self.arguments, *options], environment, log)

    def __call__(self, *options, **plan):
        return self.begin(*options, **plan).end()


@pytest.fixture
def make(tmp_path, starter, make_policy, data_file, verl_run, verl_study):
    """Return a function that makes a run's folder and its `Start`."""

    def make(model=DENSE, checkpoints=(4, UPDATES), **changes):
        weights = tmp_path / "initial" / "weights"
        save_policy(make_policy(4 if model == MOE else 0), weights)
        tokenizer = read_json(weights / "tokenizer_config.json")
        write_json(weights / "tokenizer_config.json", tokenizer | {"chat_template": TEMPLATE})
        initial = weights.with_name("initial.json")
        write_json(initial, {"weights_sha256": policy_hash(weights)})
        run, _ = verl_run(
            model,
            staleness=STALENESS,
            updates=UPDATES,
            mini_batch=4,
            rollouts_per_prompt=8,
            checkpoints=list(checkpoints),
            evaluation={"updates": [UPDATES], "temperature": 1.0, "top_p": 1.0, "seed": 1},
            optimizer={
                "learning_rate": 1e-3,
                "warmup_updates": 0,
                "betas": [0.9, 0.95],
                "weight_decay": 0.0,
                "gradient_clip": 1.0,
            },
            model_changes={"max_prompt_tokens": 6},
            **changes,
        )
        run = run.model_copy(update={"objective_code": objectives.code_hash("respo")})
        folder = tmp_path / "run"
        folder.mkdir(exist_ok=True)
        (folder / "config.yaml").write_text(yaml.safe_dump(run.model_dump(mode="json")))
        arguments = ["--config", folder / "config.yaml", "--initial", initial, "--data", data_file]
        arguments += ["--model", verl_study.config / "models" / f"{model}.yaml"]
        return Start(folder, starter, arguments)

    return make


def check_results(run, restarts=0):
    """All results are there and fit together, and nothing else."""
    kept = yaml.safe_load((run / "config.yaml").read_text())["training"]["checkpoints"]
    train = read_json(run / "train.json")
    assert train["update"] == UPDATES
    assert train["restarts"] == restarts
    assert [start["update"] for start in train["starts"]] == [0, 4][: restarts + 1]
    assert all("torch" in start["versions"] for start in train["starts"])
    assert train["tokens_generated"] == UPDATES * 160
    assert train["prompts"] + train["prompts_dropped"] == 40
    assert train["prompts_dropped"] > 0
    assert train["checkpoints"] == {
        str(update): policy_hash(run / "checkpoints" / str(update)) for update in kept
    }
    metrics = read_parquet(run / "metrics.parquet")
    assert metrics.schema.names == list(METRICS)
    assert metrics["update"].to_pylist() == list(range(1, UPDATES + 1))
    assert metrics["rollout_batch"].to_pylist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert np.isnan(metrics["dropped_groups"].to_numpy()).all()
    assert made_from(metrics)["initial_sha256"] == train["initial_sha256"]
    branches = read_parquet(run / "branches.parquet")
    assert branches.num_rows == UPDATES * 2 * 10
    assert branches["tokens"].to_pylist()[:20] == [1] * 10 + [2] * 10
    assert train["seconds"] == pytest.approx(sum(metrics["seconds"].to_pylist()))
    assert not (run / "verl").exists()
    assert not [path.name for path in (run / "checkpoints").iterdir() if path.suffix == ".part"]
    initial = run.parent / "initial" / "weights"
    for update in kept:
        folder = run / "checkpoints" / str(update)
        for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
            assert (folder / name).read_bytes() == (initial / name).read_bytes()
        before, after = load_policy(initial).weights, load_policy(folder).weights
        for name in before:
            moved = before[name] + np.float32(1e-3 * update)
            np.testing.assert_allclose(after[name], moved, atol=1e-6)


@pytest.mark.parametrize("model", [DENSE, MOE])
def test_a_run_from_its_start_to_its_results(make, model):
    start = make(model)
    code, output = start()
    assert code == 0, output
    # Beside the modules that were to be loaded, and not in their place.
    assert "modules mine,respo.training.verl.plugin" in output
    assert "prompts are longer than 6 tokens and were dropped" in output
    check_results(start.run)
    before = (start.run / "train.json").read_bytes()
    assert start() == (0, f"{start.run}: is trained already\n")
    assert (start.run / "train.json").read_bytes() == before


@pytest.mark.parametrize(
    ("plan", "begun"), [({"stop": 5}, 4), ({"stop": 8}, 8), ({"stop": 8, "half": True}, 4)]
)
def test_a_killed_trainer_is_continued(make, plan, begun):
    start = make()
    code, output = start(**plan)
    assert code == 1
    assert f"It made {plan['stop']} of 8 policy updates; the next start continues" in output
    code, output = start()
    assert code == 0, output
    assert f"{start.run}: continues after update {begun}\n" in output
    # A trainer is not started for nothing.
    assert ("modules" in output) == (begun < UPDATES)
    check_results(start.run, restarts=int(begun < UPDATES))


def test_killed_while_a_checkpoint_is_merged(make):
    start = make()
    process = start.begin(merge="hangs")
    process.wait_until(lambda: list(start.run.glob("checkpoints/.*/new/hangs")))
    os.kill(process.pid, signal.SIGKILL)
    assert process.end()[0] is None
    with (start.run / ".lock").open() as lock:  # the guard ends what is left
        fcntl.flock(lock, fcntl.LOCK_EX)
    code, output = start()
    assert code == 0, output
    # The trainer had reached its end or not.
    check_results(start.run, restarts=int("modules" in output))


def test_a_signal_while_the_last_checkpoints_are_merged(make):
    start = make()
    process = start.begin(merge="hangs")
    latest = start.run / "verl/checkpoints/latest_checkpointed_iteration.txt"
    process.wait_until(lambda: latest.exists() and latest.read_text() == "4")
    process.wait_until(lambda: list(start.run.glob("checkpoints/.*/new/hangs")))
    time.sleep(0.3)
    os.kill(process.pid, signal.SIGTERM)
    code, output = process.end()
    assert code == 128 + signal.SIGTERM
    assert "stopped" in output
    code, output = start()
    assert code == 0, output
    check_results(start.run)


@pytest.mark.parametrize(
    ("merge", "message"),
    [
        ("fails", "verl's model merger failed with exit code 1"),
        ("mixes", "tensor model.layers.0.mlp.down_proj.weight is not the trained one: "),
    ],
)
def test_a_bad_merge_is_told_and_nothing_is_lost(make, merge, message):
    start = make()
    code, output = start(merge=merge)
    assert code == 1
    assert message in output
    assert output.splitlines()[-1].startswith(f"error: {start.run}: checkpoint ")
    assert "could not be merged, see above. Nothing is lost" in output
    assert not (start.run / "train.json").exists()
    assert not list(start.run.glob("checkpoints/[0-9]*"))
    code, output = start()
    assert code == 0, output
    check_results(start.run)


def test_another_configuration_starts_anew(make):
    start = make()
    assert start(stop=5)[0] == 1
    start = make(checkpoints=[UPDATES])
    code, output = start()
    assert code == 0
    assert "is not what it is to be trained with now; training starts anew" in output
    check_results(start.run)


def test_a_changed_checkpoint_is_noticed(make):
    start = make()
    assert start()[0] == 0
    path = next((start.run / "checkpoints").glob("*/model.safetensors"))
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    code, output = start()
    assert code == 0, output
    assert "is trained already" not in output
    check_results(start.run)


def test_without_its_outputs_a_run_is_trained_anew(make):
    start = make(checkpoints=[UPDATES])
    assert start()[0] == 0
    (start.run / "metrics.parquet").unlink()
    code, output = start()
    assert code == 0
    assert "modules" in output
    check_results(start.run)


def test_a_lost_checkpoint_is_told_before_training(make):
    start = make()
    assert start(stop=8)[0] == 1
    shutil.rmtree(start.run / "checkpoints", ignore_errors=True)
    shutil.rmtree(start.run / "verl" / "checkpoints" / "global_step_2", ignore_errors=True)
    code, output = start()
    assert code == 1
    assert f"error: {start.run}: checkpoint 4 is missing, and so is the state to make" in output
    assert "modules" not in output


def test_a_log_that_is_too_short_is_told_before_training(make):
    start = make()
    assert start(stop=5)[0] == 1
    (start.run / update_log.FILE).unlink()
    code, output = start()
    assert code == 1
    assert "has 0 updates, and the state that training would continue from comes after" in output


def test_an_earlier_log_does_not_count(make):
    start = make()
    for step in (1, 2, 3, 4):
        for mini_batch in (1, 2):
            update_log.append(start.run, {"rollout_batch": step, "mini_batch": mini_batch})
    code, output = start(stop=1)
    assert code == 1
    assert "It made 1 of 8 policy updates" in output


def test_changed_initial_weights_are_told(make):
    start = make()
    write_json(start.run.parent / "initial" / "initial.json", {"weights_sha256": "0" * 64})
    code, output = start()
    assert code == 1
    assert "the initial weights have changed since their hash was taken" in output


def test_published_weights_lie_elsewhere(make, tmp_path):
    start = make(checkpoints=[UPDATES])
    initial = tmp_path / "initial"
    shutil.move(initial / "weights", tmp_path / "elsewhere")
    record = read_json(initial / "initial.json")
    write_json(initial / "initial.json", record | {"weights": str(tmp_path / "elsewhere")})
    code, output = start()
    assert code == 0, output
    shutil.rmtree(tmp_path / "elsewhere")
    code, output = start()
    assert code == 1
    assert f"{tmp_path / 'elsewhere'}: the initial weights that" in output


def test_a_logger_that_is_not_installed_is_told(make):
    code, output = make()("--logger", "wandb")
    assert code == 1
    assert output.startswith("error: --logger wandb: is not installed for ")


def test_another_model_is_refused(make, verl_study):
    start = make()
    code, output = start("--model", str(verl_study.config / "models" / "qwen3-8b.yaml"))
    assert code == 1
    assert "qwen3-8b.yaml: is not the model of " in output
