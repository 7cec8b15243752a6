"""The state of a run from what trainers leave; the expected values follow from the files."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from respo.config import ResolvedStudy, Run
from respo.config.yaml import canonical
from respo.data import chain
from respo.policy import save_policy
from respo.policy.create import create_policy
from respo.status import traces
from respo.status.traces import Progress
from respo.training.local.state import State, save_state
from respo.training.lock import this_process
from respo.training.verl import update_log

RUN = Run("qwen3-tiny", "grpo", 8, 1)
LINE = "qwen3-tiny/grpo/N8/seed1  update 24/128  mean reward +0.10  1.500 s/update  156 s left\n"
NOW = 1_700_000_000.0


@pytest.fixture
def run(folder: Path) -> Path:
    return RUN.folder(folder)


@pytest.fixture
def log(folder: Path) -> Path:
    log = folder / "logs" / "train" / f"{RUN.name}.log"
    log.parent.mkdir(parents=True)
    return log


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    """A process that by its command line is one of the project's."""
    words = ["sh", "-c", "echo started; read end", "respo.training.local"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe) as process:
        assert process.stdout
        process.stdout.readline()
        yield process
        process.kill()


def look(run: Path, log: Path) -> Progress:
    return traces.of_run(run, log, updates=128, staleness=8)


def hold(run: Path, pid: int, host: str | None = None, job: str = "") -> None:
    text = f"process {pid} on {host or socket.gethostname()}"
    (run / ".lock").write_text(f"{text}, Slurm job {job}\n" if job else f"{text}\n")


def age(seconds: float, *paths: Path) -> None:
    for path in paths:
        os.utime(path, (time.time() - seconds,) * 2)


def dead_pid() -> int:
    process = subprocess.Popen(["true"])
    process.wait()
    return process.pid


def saved(run: Path, update: int) -> None:
    save_state(run / "checkpoints" / "state", update, {}, State({}, {}))


def test_nothing_there(tmp_path: Path) -> None:
    assert look(tmp_path / "run", tmp_path / "log").state == "waiting"


def test_done(run: Path, log: Path, trained: Callable[[Run], None]) -> None:
    trained(RUN)
    assert look(run, log) == Progress("done", 128, 128)


@pytest.mark.parametrize("name", ["train.json", "metrics.parquet", "branches.parquet"])
def test_half_deleted(run: Path, log: Path, trained: Callable[[Run], None], name: str) -> None:
    trained(RUN)
    (run / name).unlink()
    log.write_text(LINE.replace("24/128", "128/128"))
    (run / ".lock").write_text("")
    assert look(run, log) == Progress("waiting", 0, 128)


def test_results_of_another_configuration(
    run: Path, log: Path, trained: Callable[[Run], None]
) -> None:
    trained(RUN)
    (run / "config.yaml").write_text("another: true\n")
    assert look(run, log).state == "waiting"


@pytest.mark.parametrize("text", ["", "[]", "{}", "[" * 100_000])
def test_damaged_results(run: Path, log: Path, trained: Callable[[Run], None], text: str) -> None:
    trained(RUN)
    (run / "train.json").write_text(text)
    assert look(run, log).state == "waiting"


def test_running_here(run: Path, log: Path, process: subprocess.Popen[bytes]) -> None:
    hold(run, process.pid)
    assert look(run, log) == Progress("running", 0, 128)
    saved(run, 16)
    assert look(run, log) == Progress("running", 16, 128)
    log.write_text(LINE)
    assert look(run, log) == Progress("running", 24, 128, 156.0)


def test_killed(run: Path, log: Path) -> None:
    """The lock still names its holder, and the newest of two states is continued."""
    hold(run, dead_pid())
    log.write_text(LINE)
    assert look(run, log) == Progress("waiting", 0, 128)
    saved(run, 9)
    saved(run, 17)
    assert look(run, log) == Progress("stopped", 17, 128)


def test_the_number_of_a_killed_process_is_used_again(run: Path, log: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        hold(run, other.pid)
        assert look(run, log).state == "waiting"
        other.kill()


def test_another_users_process_is_alive(
    run: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(pid: int, number: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    hold(run, 1)
    assert look(run, log).state == "running"


def test_the_lock_is_read_as_trainers_write_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "12")
    found = traces.HOLDER.fullmatch(this_process())
    assert found
    assert found.groupdict() == {"pid": str(os.getpid()), "host": socket.gethostname(), "job": "12"}


def test_running_on_another_machine(run: Path, log: Path) -> None:
    hold(run, 1, "gpu07", "4711")
    log.write_text(LINE)
    age(1000, run / ".lock")
    where = "on gpu07, Slurm job 4711"
    assert look(run, log) == Progress("running", 24, 128, 156.0, where)
    age(1000, log)
    saved(run, 20)
    age(1000, run / "checkpoints" / "state")
    silent = f"{where}: no sign of life for 17 minutes"
    assert look(run, log) == Progress("stopped", 20, 128, message=silent)


def test_stopped(run: Path, log: Path) -> None:
    (run / ".lock").write_text("")
    saved(run, 24)
    log.write_text(LINE + "m: stopped after update 24/128; the next start continues\n")
    assert look(run, log) == Progress("stopped", 24, 128)


def test_failed(run: Path, log: Path) -> None:
    (run / ".lock").write_text("")
    saved(run, 24)
    log.write_text(LINE + "error: results/r: loss is not finite\n")
    message = "error: results/r: loss is not finite"
    assert look(run, log) == Progress("failed", 24, 128, message=message)


def test_a_new_configuration_waits_whatever_became_of_the_old_one(run: Path, log: Path) -> None:
    saved(run, 24)
    log.write_text("error: results/r: loss is not finite\n")
    age(100, log, run / "checkpoints" / "state")
    assert look(run, log) == Progress("waiting", 0, 128)


def row(update: int, ended: float) -> str:
    batch, place = divmod(update - 1, 8)
    return json.dumps({"rollout_batch": batch + 1, "mini_batch": place + 1, "ended": ended}) + "\n"


def test_running_with_verl(run: Path, log: Path, process: subprocess.Popen[bytes]) -> None:
    """20 updates in 400 s since the start: the other 108 take 2160 s."""
    hold(run, process.pid)
    (run / "verl").mkdir()
    (run / "verl" / "starts.jsonl").write_text(f"{NOW - 5000}\n{NOW}\n")
    # Before the last start it was slower, and half a line was left.
    lines = [row(1, NOW - 4000), '{"rollout_ba\n']
    lines += [row(update, NOW + 20 * update) for update in range(1, 21)]
    (run / update_log.FILE).write_text("".join(lines))
    assert look(run, log) == Progress("running", 20, 128, 2160.0)


def test_verl_without_an_update_since_its_start(
    run: Path, log: Path, process: subprocess.Popen[bytes]
) -> None:
    hold(run, process.pid)
    (run / update_log.FILE).write_text(row(16, NOW))
    assert look(run, log) == Progress("running", 16, 128)
    (run / update_log.FILE).write_text('{"half')
    (run / "verl").mkdir()
    (run / "verl" / "starts.jsonl").write_text(f"{NOW}\nhalf")
    assert look(run, log) == Progress("running", 0, 128)


def test_verl_without_starts_goes_by_the_updates(
    run: Path, log: Path, process: subprocess.Popen[bytes]
) -> None:
    """Two updates after the first in 60 s: the other 125 take 3750 s."""
    hold(run, process.pid)
    (run / update_log.FILE).write_text("".join(row(u, NOW + 30 * u) for u in (1, 2, 3)))
    assert look(run, log) == Progress("running", 3, 128, 3750.0)


def test_verl_continues_after_its_state(run: Path, log: Path) -> None:
    """The state of step 2 with N = 8: update 16 of the 20 that were made."""
    (run / "verl" / "checkpoints").mkdir(parents=True)
    (run / "verl" / "checkpoints" / "latest_checkpointed_iteration.txt").write_text("2")
    (run / update_log.FILE).write_text(row(20, NOW))
    (run / ".lock").write_text("")
    log.write_text("error: results/r: the trainer was killed by SIGKILL.\n")
    message = "error: results/r: the trainer was killed by SIGKILL."
    assert look(run, log) == Progress("failed", 16, 128, message=message)
    hold(run, dead_pid())
    assert look(run, log) == Progress("stopped", 16, 128)


def test_initial_weights(folder: Path, tmp_path: Path, process: subprocess.Popen[bytes]) -> None:
    place, log = folder / "initial" / "qwen3-tiny", tmp_path / "log"
    assert traces.of_initial(place, log) == Progress("waiting")
    hold(place, process.pid)
    assert traces.of_initial(place, log) == Progress("running")
    log.write_text("tiny/initial/qwen3-tiny  step 200/400  loss 0.5  0.1 s/step  20 s left\n")
    assert traces.of_initial(place, log) == Progress("running", 200, 400, 20.0)
    (place / ".lock").write_text("")
    log.write_text("error: the loss is nan\n")
    assert traces.of_initial(place, log) == Progress("failed", message="error: the loss is nan")
    (place / "initial.json").write_text("{}")
    assert traces.of_initial(place, log) == Progress("done")


def test_initial_weights_whose_warm_start_was_killed(folder: Path, tmp_path: Path) -> None:
    place, log = folder / "initial" / "qwen3-tiny", tmp_path / "log"
    hold(place, dead_pid())
    assert traces.of_initial(place, log) == Progress("waiting")
    log.write_text("tiny/initial/qwen3-tiny  step 75/900  loss 0.5  0.1 s/step  83 s left\n")
    assert traces.of_initial(place, log) == Progress("stopped", 75, 900)
    # What an earlier start has told says nothing of the one that held the lock last.
    age(100, log)
    assert traces.of_initial(place, log) == Progress("waiting")


def test_a_real_training_that_is_killed(study: ResolvedStudy, run: Path, log: Path) -> None:
    from respo.objectives import code_hash

    config = study.run_config(RUN, code_hash("grpo"))
    training = config.training.model_copy(
        update={"mini_batch": 2, "rollouts_per_prompt": 2, "checkpoints": [2, 128]}
    )
    config = config.model_copy(update={"training": training})
    (run / "config.yaml").write_text(canonical(config.model_dump(mode="json")))
    policy = config.model
    save_policy(create_policy(policy.architecture, 128, seed=0), run.parent / "weights")
    data = run.parent / "train.parquet"
    write_prompts(data)
    words = [sys.executable, "-m", "respo.training.local", "--config", str(run / "config.yaml")]
    words += ["--initial", str(run.parent / "weights"), "--data", str(data)]
    with log.open("w") as output, subprocess.Popen(words, stderr=output) as trainer:
        try:
            deadline = time.monotonic() + 120
            while (found := look(run, log)).done < 2:
                assert trainer.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
            assert found.state == "running"
        finally:
            trainer.send_signal(signal.SIGKILL)
    stopped = look(run, log)
    assert stopped.state == "stopped"
    assert 2 <= stopped.done < 128


def write_prompts(path: Path) -> None:
    import pyarrow as pa

    from respo.parquet import write_parquet

    prompts = chain.distinct_prompts(1, 3, 40, seed=5, held_out=False)
    names = [f"row-{index}" for index in range(len(prompts))]
    answers = [chain.answer(prompt) for prompt in prompts]
    write_parquet(path, pa.table({"id": names, "prompt": prompts, "answer": answers}), {})
