import math
import os
import shutil
import signal
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import torch

from respo.config.schema import RunConfig
from respo.environment import environment
from respo.policy import load_policy, policy_hash
from respo.training.local import state as state_module
from respo.training.local import trainer as trainer_module
from respo.training.local.interrupt import Interrupt
from respo.training.local.metrics import METRICS
from respo.training.local.prompts import Prompts
from respo.training.local.trainer import Trainer, is_intact

# What does not depend on the kind of network is tested with one kind.
MIXTURE = pytest.mark.parametrize("initial", [4], indirect=True, ids=["moe"])
DENSE = pytest.mark.parametrize("initial", [0], indirect=True, ids=["dense"])
MakeTrainer = Callable[..., Trainer]
IDENTITY = {"config_sha256": "c", "data_sha256": "d", "initial_sha256": "i"}
TIMES = ("seconds", "tokens_per_second")


class NoInterrupt(Interrupt):
    """Never asked to stop; leaves the signal handlers of the test process alone."""

    def __init__(self) -> None:
        self.number = None


@pytest.fixture
def make_trainer(
    initial: Path, prompts: Prompts, make_config: Callable[..., RunConfig]
) -> MakeTrainer:
    def make(run: Path, identity: dict[str, str] = IDENTITY, **changes: Any) -> Trainer:
        return Trainer(run, make_config(**changes), load_policy(initial), prompts, identity)

    return make


def train(trainer: Trainer) -> Trainer:
    trainer.train(NoInterrupt())
    return trainer


def result(trainer: Trainer) -> tuple[list[torch.Tensor], list[list[float]], torch.Tensor]:
    """All that must be the same after a restart: weights, metrics without times, branches."""
    names = [name for name in METRICS if name not in TIMES]
    # NaN (a sign without tokens) equals NaN here.
    rows = [[repr(row[name]) for name in names] for row in trainer.metrics]
    return trainer.policy.parameters(), rows, trainer.branches_USKN  # type: ignore[return-value]


def assert_same(one: Trainer, other: Trainer) -> None:
    weights, rows, branches = result(one)
    other_weights, other_rows, other_branches = result(other)
    assert all(map(torch.equal, weights, other_weights))
    assert rows == other_rows
    assert torch.equal(branches, other_branches)
    assert one.checkpoints == other.checkpoints
    assert one.tokens == other.tokens
    assert one.prompts == other.prompts


def dies(run: Callable[[], object]) -> None:
    """Run in a child process that kills itself with kill -9 on the way."""
    child = os.fork()
    if child == 0:
        try:
            run()
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL


def kill_self(*arguments: object, **keywords: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def at_call(number: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, but kill -9 just before its ``number``-th call."""
    calls = 0

    def wrapped(*arguments: Any, **keywords: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number:
            kill_self()
        return function(*arguments, **keywords)

    return wrapped


def test_updates_of_a_rollout_batch_share_one_behaviour_policy(
    tmp_path: Path, make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected = []
    collect = trainer_module.collect

    def recording(
        policy: Any, prompts: Any, config: Any, index: int, cursor: int, *rest: Any
    ) -> Any:
        weights = [w.detach().clone() for w in policy.parameters()]
        rollout = collect(policy, prompts, config, index, cursor, *rest)
        collected.append((index, weights))
        return rollout

    monkeypatch.setattr(trainer_module, "collect", recording)
    trainer = train(make_trainer(tmp_path))
    assert [index for index, _ in collected] == [0, 1]
    assert not all(map(torch.equal, collected[0][1], collected[1][1]))
    metrics = trainer.metrics
    assert [row["update"] for row in metrics] == list(range(1, 9))
    assert [row["rollout_batch"] for row in metrics] == [0] * 4 + [1] * 4
    # log W is 0 where the weights are still those that sampled, and nowhere else.
    assert [row["log_ratio_q95"] == 0 for row in metrics] == ([True] + [False] * 3) * 2
    assert metrics[3]["approx_kl"] > metrics[1]["approx_kl"] > 0
    assert any(row["zero_advantage_groups"] < 1 for row in metrics)


@DENSE
def test_checkpoints_are_the_policy_of_their_update(
    tmp_path: Path, make_trainer: MakeTrainer
) -> None:
    trainer = train(make_trainer(tmp_path))
    folder = tmp_path / "checkpoints"
    assert sorted(p.name for p in folder.iterdir()) == ["3", "8", "state"]
    assert trainer.checkpoints == {u: policy_hash(folder / u) for u in ("3", "8")}
    last = load_policy(folder / "8").parameters()
    assert all(map(torch.equal, last, trainer.policy.parameters()))
    third = train(make_trainer(tmp_path / "short", updates=3, checkpoints=[3]))
    assert third.checkpoints["3"] == trainer.checkpoints["3"]


@DENSE
@pytest.mark.parametrize(
    ("where", "what", "number", "restarted_at"),
    [
        # Between updates, in the middle of a rollout batch; the 3rd update was saved last.
        (trainer_module, "policy_update", 5, 4),
        # While sampling the second rollout batch.
        (trainer_module, "collect", 2, 4),
        # While writing the state of update 6: before it, between its two files, before the rename.
        (trainer_module, "save_state", 6, 5),
        (state_module.Path, "write_text", 6, 5),
        (state_module.Path, "rename", 7, 5),
        # While deleting the state that is older than the newest two.
        (state_module.shutil, "rmtree", 6, 6),
        # After the checkpoint of update 3, before the state that knows of it.
        (trainer_module, "policy_hash", 1, 2),
        # Before the very first state.
        (trainer_module, "policy_update", 1, 0),
    ],
)
def test_killed_and_continued_equals_unbroken(
    tmp_path: Path,
    make_trainer: MakeTrainer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    where: Any,
    what: str,
    number: int,
    restarted_at: int,
) -> None:
    monkeypatch.setattr(trainer_module, "SAVE_SECONDS", 0.0)  # a state after each update
    unbroken = train(make_trainer(tmp_path / "unbroken"))

    def die() -> None:
        setattr(where, what, at_call(number, getattr(where, what)))
        train(make_trainer(tmp_path / "run"))

    dies(die)
    continued = train(make_trainer(tmp_path / "run"))
    assert_same(continued, unbroken)
    assert continued.restarts == (1 if restarted_at else 0)
    # Each start is told, whatever the state that it went on from.
    assert [start["update"] for start in continued.starts] == sorted({0, restarted_at})
    for start in continued.starts:
        assert start["device"] == "cpu"
        assert start["versions"] == environment("torch", "safetensors")
        assert datetime.fromisoformat(start["at"]).tzinfo
    told = capsys.readouterr().err
    assert (f"continues after update {restarted_at}\n" in told) == (restarted_at > 0)
    assert ("continues" in told) == (restarted_at > 0)


@MIXTURE
@pytest.mark.parametrize("update", range(2, 9))
@pytest.mark.parametrize("replay", ["R2", "R3"])
def test_all_options_survive_a_kill_before_any_update(
    tmp_path: Path,
    make_trainer: MakeTrainer,
    monkeypatch: pytest.MonkeyPatch,
    update: int,
    replay: str,
) -> None:
    monkeypatch.setattr(trainer_module, "SAVE_SECONDS", 0.0)  # a state after each update
    options = {
        "kl_coefficient": 0.01,
        "entropy_coefficient": 0.01,
        "dynamic_sampling": 3,
        "overlong_buffer": 4,
        "routing_replay": replay,
        "staleness": 2,
    }
    unbroken = train(make_trainer(tmp_path / "unbroken", **options))
    # Dynamic sampling has moved the prompts of later rollout batches.
    assert unbroken.prompts > 8 * 4

    def die() -> None:
        monkeypatch.setattr(
            trainer_module, "policy_update", at_call(update, trainer_module.policy_update)
        )
        train(make_trainer(tmp_path / "run", **options))

    dies(die)
    continued = train(make_trainer(tmp_path / "run", **options))
    assert continued.restarts == 1
    assert_same(continued, unbroken)


@DENSE
def test_rollout_batches_take_up_the_prompts_where_the_last_one_stopped(
    tmp_path: Path, make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollouts = []
    collect = trainer_module.collect

    def recording(
        policy: Any, prompts: Any, config: Any, index: int, cursor: int, *rest: Any
    ) -> Any:
        rollouts.append((cursor, collect(policy, prompts, config, index, cursor, *rest)))
        return rollouts[-1][1]

    monkeypatch.setattr(trainer_module, "collect", recording)
    trainer = train(make_trainer(tmp_path, dynamic_sampling=3, staleness=2))
    cursors = [cursor for cursor, _ in rollouts]
    sampled = [rollout.prompts for _, rollout in rollouts]
    assert cursors == [sum(sampled[:batch]) for batch in range(4)]
    assert trainer.prompts == sum(sampled) > 4 * 8
    assert trainer.tokens == sum(rollout.tokens for _, rollout in rollouts)
    # 2 * 4 groups of each are learned from.
    dropped = [row["dropped_groups"] for row in trainer.metrics]
    assert dropped == [1 - 8 / prompts for prompts in sampled for _ in range(2)]


@DENSE
def test_the_reference_of_the_kl_loss_is_the_initial_policy(
    tmp_path: Path, make_trainer: MakeTrainer
) -> None:
    trainer = train(make_trainer(tmp_path / "kl", kl_coefficient=0.1, staleness=2))
    kl = [row["reference_kl"] for row in trainer.metrics]
    # Zero at the first update alone, although pi_old is renewed at the third.
    assert kl[0] == pytest.approx(0, abs=1e-6)
    assert min(kl[1:]) > 1e-3
    strong = train(make_trainer(tmp_path / "strong", kl_coefficient=3.0, staleness=2))
    assert strong.metrics[-1]["reference_kl"] < kl[-1]
    plain = train(make_trainer(tmp_path / "plain", staleness=2))
    assert all(math.isnan(row["reference_kl"]) for row in plain.metrics)
    assert all(math.isnan(row["dropped_groups"]) for row in plain.metrics)


def test_continued_twice_with_rare_saves(
    tmp_path: Path, make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    unbroken = train(make_trainer(tmp_path / "unbroken"))  # saves at its checkpoints alone
    run = tmp_path / "run"
    for updates in (5, 4):  # both after the checkpoint of update 3, the second from there on

        def die(updates: int = updates) -> None:
            trainer_module.policy_update = at_call(updates, trainer_module.policy_update)
            train(make_trainer(run))

        dies(die)
    continued = train(make_trainer(run))
    assert_same(continued, unbroken)


@DENSE
def test_a_damaged_state_costs_work_but_not_the_result(
    tmp_path: Path,
    make_trainer: MakeTrainer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(trainer_module, "SAVE_SECONDS", 0.0)
    unbroken = train(make_trainer(tmp_path / "unbroken"))
    run = tmp_path / "run"
    train(make_trainer(run))
    tensors = run / "checkpoints" / "state" / "8" / "tensors.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:1000])
    continued = train(make_trainer(run))
    assert_same(continued, unbroken)
    told = capsys.readouterr().err
    assert "not a whole state" in told
    assert "continues after update 7" in told


@DENSE
def test_other_inputs_start_anew(
    tmp_path: Path, make_trainer: MakeTrainer, capsys: pytest.CaptureFixture[str]
) -> None:
    other = IDENTITY | {"config_sha256": "other"}
    expected = train(make_trainer(tmp_path / "fresh", other, objective="grpo", checkpoints=[2]))
    run = tmp_path / "run"
    train(make_trainer(run))
    trainer = train(make_trainer(run, other, objective="grpo", checkpoints=[2]))
    assert_same(trainer, expected)
    assert trainer.restarts == 0
    assert "made from another config; not continued" in capsys.readouterr().err
    # Nothing of the other configuration is left to be taken for a checkpoint of this one.
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["2", "state"]


@DENSE
@pytest.mark.parametrize("damage", ["change", "delete", "config.json", "tokenizer.json"])
def test_a_lost_checkpoint_starts_anew(
    tmp_path: Path, make_trainer: MakeTrainer, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    unbroken = train(make_trainer(tmp_path))
    checkpoint = tmp_path / "checkpoints" / "3"
    if damage == "delete":
        shutil.rmtree(checkpoint)
    elif damage.endswith(".json"):  # one character: still a configuration, still a tokenizer
        text = (checkpoint / damage).read_text()
        changed = text.replace("10000.0", "10001.0").replace('"-": 15', '"~": 15')
        assert changed != text
        (checkpoint / damage).write_text(changed)
    else:
        (checkpoint / "model.safetensors").write_bytes(b"0")
    again = train(make_trainer(tmp_path))
    assert_same(again, unbroken)
    assert again.restarts == 0
    assert "the checkpoint is missing or was changed" in capsys.readouterr().err
    assert is_intact(checkpoint, unbroken.checkpoints["3"], unbroken.policy)


@DENSE
def test_left_overs_of_a_killed_trainer_are_removed(
    tmp_path: Path, make_trainer: MakeTrainer
) -> None:
    (tmp_path / "checkpoints" / ".3.abc.part").mkdir(parents=True)
    (tmp_path / ".train.json.abc.part").touch()
    train(make_trainer(tmp_path))
    assert not list(tmp_path.rglob("*.part"))


@DENSE
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_exits(
    tmp_path: Path,
    make_trainer: MakeTrainer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: int,
) -> None:
    unbroken = train(make_trainer(tmp_path / "unbroken"))
    update = trainer_module.policy_update
    handlers = {n: signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)}

    def signalled(*arguments: Any, **keywords: Any) -> Any:
        if arguments[3] == 6:
            os.kill(os.getpid(), number)
        return update(*arguments, **keywords)

    monkeypatch.setattr(trainer_module, "policy_update", signalled)
    run = tmp_path / "run"
    try:
        with pytest.raises(SystemExit) as stopped:
            make_trainer(run).train(Interrupt())
    finally:
        for n, handler in handlers.items():
            signal.signal(n, handler)
    assert stopped.value.code == 128 + number
    assert "stopped after update 6/8; the next start continues" in capsys.readouterr().err
    monkeypatch.setattr(trainer_module, "policy_update", update)
    continued = train(make_trainer(run))
    assert_same(continued, unbroken)
    assert continued.restarts == 1


@DENSE
def test_a_signal_between_rounds_of_dynamic_sampling_is_obeyed(
    tmp_path: Path, make_trainer: MakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # At this temperature all responses to a prompt are the same: no group ever has spread.
    options = {"dynamic_sampling": 1000, "temperature": 1e-3}
    interrupt = NoInterrupt()
    collect = trainer_module.collect
    rounds = 0

    def counting(*arguments: Any) -> Any:
        *known, between_rounds = arguments

        def between() -> None:
            nonlocal rounds
            rounds += 1
            if rounds == 3:
                interrupt.number = signal.SIGTERM
            between_rounds()

        return collect(*known, between)

    monkeypatch.setattr(trainer_module, "collect", counting)
    with pytest.raises(SystemExit) as stopped:
        make_trainer(tmp_path, **options).train(interrupt)
    assert stopped.value.code == 128 + signal.SIGTERM
    assert rounds == 3
