import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch

from respo.cli import UserError
from respo.config.schema import RunConfig
from respo.config.yaml import canonical
from respo.environment import environment
from respo.files import read_json, sha256_of, write_json
from respo.parquet import made_from, read_parquet, write_parquet
from respo.policy import Policy, load_policy, policy_hash, save_policy
from respo.training.local import __main__ as command_line
from respo.training.local import device
from respo.training.local.metrics import METRICS
from respo.training.lock import this_process

# What does not depend on the kind of network is tested with one kind.
DENSE = pytest.mark.parametrize("initial", [0], indirect=True, ids=["dense"])
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(
    tmp_path: Path, initial: Path, data_file: Path, make_config: Callable[..., RunConfig]
) -> Start:
    """Start the command in a process of its own."""

    def start(**changes: Any) -> subprocess.Popen[str]:
        run = write_config(
            tmp_path / "tiny" / "model" / "respo" / "N4" / "seed1", make_config(**changes)
        )
        return subprocess.Popen(
            [sys.executable, "-m", "respo.training.local", *arguments(run, initial, data_file)],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )

    return start


def write_config(run: Path, config: RunConfig) -> Path:
    run.mkdir(parents=True, exist_ok=True)
    (run / "config.yaml").write_text(canonical(config.model_dump(mode="json")))
    return run


def arguments(run: Path, initial: Path, data_file: Path) -> list[str]:
    return [
        "--config",
        str(run / "config.yaml"),
        "--initial",
        str(initial),
        "--data",
        str(data_file),
    ]


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    """Run the command in this process; the signal handlers are put back."""
    handlers = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)}
    monkeypatch.setattr(sys, "argv", ["respo.training.local", *arguments])
    try:
        command_line.main()
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


@DENSE
def test_a_run_with_another_reward(
    tmp_path: Path,
    initial: Path,
    data_file: Path,
    make_config: Callable[..., RunConfig],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Answers as `7.0`: no digit in a box is this text, and many are this number."""
    rows = read_parquet(data_file).to_pydict()
    rows["answer"] = [f"{answer}.0" for answer in rows["answer"]]
    data = tmp_path / "data.parquet"
    write_parquet(data, pa.table(rows), {})
    scores = {}
    for reward in ("strict_box", "math_verify"):
        config = make_config(reward=reward, updates=4, checkpoints=[4])
        run = write_config(tmp_path / reward, config)
        call(monkeypatch, *arguments(run, initial, data))
        scores[reward] = read_parquet(run / "metrics.parquet")["score"].to_pylist()
    assert scores["strict_box"] == [-1.0] * 4
    assert all(-1.0 < score <= 1.0 for score in scores["math_verify"])


@DENSE
def test_outputs(
    tmp_path: Path,
    initial: Path,
    data_file: Path,
    make_config: Callable[..., RunConfig],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = write_config(tmp_path / "tiny" / "model" / "respo" / "N4" / "seed1", make_config())
    call(monkeypatch, *arguments(run, initial, data_file))
    assert capsys.readouterr().err.startswith("model/respo/N4/seed1  update 8/8  mean reward ")
    train = read_json(run / "train.json")
    identity = {
        "config_sha256": sha256_of(run / "config.yaml"),
        "data_sha256": sha256_of(data_file),
        "initial_sha256": policy_hash(initial),
    }
    assert {key: train[key] for key in identity} == identity
    assert train["update"] == 8
    assert train["checkpoints"] == {u: policy_hash(run / "checkpoints" / u) for u in ("3", "8")}
    assert train["restarts"] == 0
    assert train["device"] == "cpu"
    (start,) = train["starts"]
    assert (start["update"], start["device"]) == (0, "cpu")
    assert start["versions"] == train["versions"] == environment("torch", "safetensors")
    assert start["at"] <= train["ended"]
    assert train["prompts"], train["prompts_dropped"] == (40, 0)
    metrics = read_parquet(run / "metrics.parquet")
    assert metrics.column_names == list(METRICS)
    assert metrics["update"].to_pylist() == list(range(1, 9))
    assert read_parquet(run / "branches.parquet").num_rows == 8 * 2 * 10
    assert made_from(metrics) == identity
    tokens = sum(metrics["response_length"].to_pylist()) * 16
    assert train["tokens_generated"] == pytest.approx(tokens)
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["3", "8"]

    # Complete: nothing to do, also if it was killed before the states were removed. Without its
    # outputs, as Snakemake starts it anew, it is trained anew.
    (run / "checkpoints" / "state" / "8").mkdir(parents=True)
    call(monkeypatch, *arguments(run, initial, data_file))
    assert "is trained already" in capsys.readouterr().err
    assert not (run / "checkpoints" / "state").exists()
    (run / "train.json").unlink()
    call(monkeypatch, *arguments(run, initial, data_file))
    again = read_json(run / "train.json")
    assert again["restarts"] == 0
    assert again["checkpoints"] == train["checkpoints"]


def damaged(train: dict[str, Any], how: str) -> Any:
    match how:
        case "list":
            return [train]
        case "no checkpoints":
            return {key: value for key, value in train.items() if key != "checkpoints"}
        case "empty checkpoints":
            return train | {"checkpoints": {}}
        case "text for checkpoints":
            return train | {"checkpoints": "3, 8"}
        case "early end":
            return train | {"update": 7}
        case _:
            return train


@DENSE
@pytest.mark.parametrize(
    ("how", "finished"),
    [
        ("whole", True),
        ("list", False),
        ("no checkpoints", False),
        ("empty checkpoints", False),
        ("text for checkpoints", False),
        ("early end", False),
        ("config of a checkpoint", False),
        ("checkpoint without tokenizer", False),
    ],
)
def test_finished_is_a_whole_training_of_the_same_inputs(
    tmp_path: Path,
    policy: Policy,
    make_config: Callable[..., RunConfig],
    how: str,
    finished: bool,
) -> None:
    identity = {"config_sha256": "c", "data_sha256": "d", "initial_sha256": "i"}
    for update in ("3", "8"):
        save_policy(policy, tmp_path / "checkpoints" / update)
    sha256 = policy_hash(tmp_path / "checkpoints" / "8")
    train = {**identity, "update": 8, "checkpoints": {"3": sha256, "8": sha256}}
    (tmp_path / "train.json").write_text(json.dumps(damaged(train, how)))
    for name in ("metrics.parquet", "branches.parquet"):
        (tmp_path / name).touch()
    if how == "config of a checkpoint":
        path = tmp_path / "checkpoints" / "3" / "config.json"
        path.write_text(path.read_text().replace("10000.0", "10001.0"))
    if how == "checkpoint without tokenizer":
        (tmp_path / "checkpoints" / "8" / "tokenizer.json").unlink()
    assert command_line.is_finished(tmp_path, make_config(), policy, identity) is finished
    other = identity | {"data_sha256": "other"}
    assert not command_line.is_finished(tmp_path, make_config(), policy, other)


@DENSE
def test_another_end_than_the_last_update_is_an_error(
    tmp_path: Path,
    initial: Path,
    data_file: Path,
    make_config: Callable[..., RunConfig],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def ends_late(trainer: command_line.Trainer, interrupt: object) -> None:
        trainer.update = 158

    monkeypatch.setattr(command_line.Trainer, "train", ends_late)
    run = write_config(tmp_path / "run", make_config())
    with pytest.raises(
        SystemExit, match=r"training ended at update 158 instead of 8; delete .*run"
    ):
        call(monkeypatch, *arguments(run, initial, data_file))
    assert not (run / "train.json").exists()


@DENSE
def test_initial_weights_that_are_lost_are_one_message(
    tmp_path: Path,
    initial: Path,
    data_file: Path,
    make_config: Callable[..., RunConfig],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = write_config(tmp_path / "run", make_config())
    weights = tmp_path / "initial" / "weights"
    weights.parent.mkdir()
    write_json(weights.parent / "initial.json", {"weights_sha256": policy_hash(initial)})
    remedy = f"make them anew: snakemake --forcerun {weights.parent / 'initial.json'}"
    with pytest.raises(SystemExit) as ended:
        call(monkeypatch, *arguments(run, weights, data_file))
    assert str(ended.value).startswith(f"error: {weights}: the initial weights cannot be used")
    assert str(ended.value).endswith(remedy)


@DENSE
def test_terminated_then_continued(tmp_path: Path, start: Start) -> None:
    run = tmp_path / "tiny" / "model" / "respo" / "N4" / "seed1"
    trainer = start(updates=4000, checkpoints=[20])
    wait_for(run / "checkpoints" / "20", trainer)
    trainer.send_signal(signal.SIGTERM)
    _, told = trainer.communicate(timeout=60)
    assert trainer.returncode == 143
    assert "the next start continues" in told
    (state,) = [json.loads(p.read_text()) for p in newest_states(run)[:1]]
    assert state["update"] >= 20
    assert not (run / "train.json").exists()


@DENSE
def test_a_second_trainer_waits_and_then_has_nothing_to_do(
    tmp_path: Path,
    start: Start,
    initial: Path,
    data_file: Path,
    make_config: Callable[..., RunConfig],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = write_config(tmp_path / "tiny" / "model" / "respo" / "N4" / "seed1", make_config())
    call(monkeypatch, *arguments(run, initial, data_file))
    before = (run / "train.json").read_text()
    with (run / ".lock").open("r+") as holder:  # the first trainer, still at work
        fcntl.flock(holder, fcntl.LOCK_EX)
        holder.write(f"{this_process()}\n")
        holder.flush()
        second = start()
        assert second.stderr is not None
        waiting = second.stderr.readline()
        assert f"is being trained by process {os.getpid()} on " in waiting
        assert second.poll() is None
    _, told = second.communicate(timeout=60)
    assert second.returncode == 0
    assert "is trained already" in told
    assert (run / "train.json").read_text() == before


def wait_for(path: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def newest_states(run: Path) -> list[Path]:
    folder = run / "checkpoints" / "state"
    numbers = sorted((int(path.name) for path in folder.iterdir()), reverse=True)
    return [folder / str(number) / "state.json" for number in numbers]


@DENSE
@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("config", "config.yaml: no such file"),
        ("initial", "weights/config.json: no such file"),
        ("data", "train.parquet: no such file"),
        ("objective_code", "objective_code 000000000000 is not that of the installed respo"),
        ("parameters", "objective: respo: beta_pos = 2.0 is not allowed"),
        ("device", "--device cuda:99: cannot be used here"),
    ],
)
def test_bad_input_is_one_message(
    tmp_path: Path,
    initial: Path,
    data_file: Path,
    make_config: Callable[..., RunConfig],
    monkeypatch: pytest.MonkeyPatch,
    what: str,
    message: str,
) -> None:
    config = make_config()
    if what == "objective_code":
        config = config.model_copy(update={"objective_code": "0" * 12})
    if what == "parameters":
        config = make_config(beta_pos=2.0)
    run = write_config(tmp_path / "run", config)
    given = arguments(run, initial, data_file)
    if what in ("config", "initial", "data"):
        position = given.index(f"--{what}") + 1
        given[position] = str(tmp_path / "nowhere" / Path(given[position]).name)
    if what == "device":
        given += ["--device", "cuda:99"]
    with pytest.raises(SystemExit, match=message):
        call(monkeypatch, *given)
    assert not (run / "train.json").exists()


def test_device_names() -> None:
    device.check_device("cpu")
    assert device.device_name("cpu") == "cpu"
    assert device.peak_memory_mb("cpu")["process"] > 50
    with pytest.raises(UserError, match="--device tpu: cannot be used here"):
        device.check_device("tpu")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu(
    tmp_path: Path,
    initial: Path,
    data_file: Path,
    make_config: Callable[..., RunConfig],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = write_config(tmp_path / "run", make_config())
    call(monkeypatch, *arguments(run, initial, data_file), "--device", "cuda")
    train = read_json(run / "train.json")
    assert train["device"].startswith("cuda (")
    load_policy(run / "checkpoints" / "8")
