import dataclasses
import fcntl
import math
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from respo.cli import UserError
from respo.config.schema import InitialConfig, RunConfig
from respo.config.yaml import canonical
from respo.files import read_json, sha256_of
from respo.policy import Policy, forward, policy_hash
from respo.training import lock
from respo.training.local import warm_start as module
from respo.training.local.optimizer import AdamW
from respo.training.local.prompts import Prompts
from respo.training.local.warm_start import learning_rate, supervised_gradient, warm_start


def test_learning_rate_by_hand() -> None:
    # Warm-up to the peak over 50 steps; cosine from 1 at step 0 to 0.1 at the end.
    assert learning_rate(0, 900, 1.0) == pytest.approx(1 / 50)
    assert learning_rate(24, 10**9, 1.0) == pytest.approx(1 / 2)
    assert learning_rate(450, 900, 2.0) == pytest.approx(2 * 0.55)
    assert learning_rate(899, 900, 1.0) == pytest.approx(0.1, abs=1e-4)


def test_loss_and_gradient_are_those_of_the_mean_over_response_tokens(
    make_policy: Callable[..., Policy],
) -> None:
    optimizer = AdamW(make_policy(), betas=(0.9, 0.95), weight_decay=0.0, clip=1.0)
    pairs = [([4, 5, 17], [2, 6, 3, 1]), ([4] * 5, [7] * 9 + [1]), ([8, 17], [1])]
    pairs += [([4, 17], [5] * length + [1]) for length in range(1, 41)]  # several micro-batches
    losses = []
    for prompt, response in pairs:
        ids = torch.tensor([prompt + response])
        log_probs = forward(optimizer.policy, ids)[0].log_softmax(-1)
        losses += [-log_probs[len(prompt) - 1 + t, token] for t, token in enumerate(response)]
    expected = torch.stack(losses).mean()
    results = []
    for threads in (1, 2, 3):
        with ThreadPoolExecutor(threads) as pool:
            results.append(supervised_gradient(optimizer, pairs, pool))
    loss, gradient = results[0]
    assert loss == pytest.approx(expected.item(), rel=1e-5)
    torch.testing.assert_close(gradient, optimizer.gradient(expected), atol=1e-6, rtol=1e-4)
    # Bit for bit, whatever the number of threads.
    assert all(other == loss and torch.equal(g, gradient) for other, g in results)


def test_learns_and_repeats_bit_for_bit(
    make_policy: Callable[..., Policy], make_config: Callable[..., RunConfig], prompts: Prompts
) -> None:
    settings = make_config().model.warm_start.model_copy(update={"steps": 40})
    policy = make_policy()
    before = [w.clone() for w in policy.parameters()]
    one, loss = warm_start(policy, prompts, settings, "test")
    two, again = warm_start(policy, prompts, settings, "test")
    assert loss == again < math.log(20)
    assert all(map(torch.equal, one.parameters(), two.parameters()))
    assert all(map(torch.equal, before, policy.parameters()))
    other = settings.model_copy(update={"seed": 1})
    assert warm_start(policy, prompts, other, "test")[1] != loss


def test_a_loss_that_is_not_finite_stops(
    make_policy: Callable[..., Policy], make_config: Callable[..., RunConfig], prompts: Prompts
) -> None:
    policy = make_policy()
    weights = {name: w.clone().fill_(math.nan) for name, w in policy.weights.items()}
    policy = dataclasses.replace(policy, weights=weights)
    with pytest.raises(UserError, match="test: step 1: the loss is nan"):
        warm_start(policy, prompts, make_config().model.warm_start, "test")


@pytest.fixture
def out(
    tmp_path: Path,
    data_file: Path,
    make_policy: Callable[..., Policy],
    make_config: Callable[..., RunConfig],
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """Folder of a configuration of 3 steps, for which the command is called."""
    run = make_config()
    start = run.model.warm_start.model_copy(update={"steps": 3})
    config = InitialConfig(
        model=run.model.model_copy(update={"warm_start": start}), data=run.train_data
    )
    out = tmp_path / "tiny" / "initial" / "model"
    out.mkdir(parents=True)
    (out / "config.yaml").write_text(canonical(config.model_dump(mode="json")))
    # Drawing weights imports transformers, which takes seconds; tests/policy has its tests.
    monkeypatch.setattr(
        module, "create_policy", lambda architecture, positions, seed: make_policy()
    )
    monkeypatch.setattr(
        sys,
        "argv",
        ["", "--config", str(out / "config.yaml"), "--data", str(data_file), "--out", str(out)],
    )
    return out


def test_command(out: Path, data_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module.main()
    initial = read_json(out / "initial.json")
    assert initial["config_sha256"] == sha256_of(out / "config.yaml")
    assert initial["data_sha256"] == sha256_of(data_file)
    assert initial["weights_sha256"] == policy_hash(out / "weights")
    assert initial["steps"] == 3
    assert initial["versions"]["transformers"]
    assert capsys.readouterr().err.startswith("tiny/initial/model  step 3/3  loss ")


@pytest.mark.parametrize("change", ["nothing", "weights", "config"])
def test_weights_are_made_again_only_if_they_are_lost_or_of_other_inputs(
    out: Path, capsys: pytest.CaptureFixture[str], change: str
) -> None:
    module.main()
    before = read_json(out / "initial.json")
    if change == "weights":
        (out / "weights" / "model.safetensors").write_bytes(b"0")
    if change == "config":
        path = out / "config.yaml"
        path.write_text(path.read_text().replace("steps: 3", "steps: 2"))
    module.main()
    told = capsys.readouterr().err
    assert ("the initial weights are made already" in told) == (change == "nothing")
    after = read_json(out / "initial.json")
    assert (after == before) == (change == "nothing")
    assert after["steps"] == (2 if change == "config" else 3)
    assert after["weights_sha256"] == policy_hash(out / "weights")
    assert (after["weights_sha256"] == before["weights_sha256"]) == (change != "config")


def test_a_second_start_waits_and_then_has_nothing_to_do(
    out: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module.main()
    before = (out / "initial.json").read_text()
    with (out / ".lock").open("r+") as holder:  # the first start, still at work
        fcntl.flock(holder, fcntl.LOCK_EX)
        holder.write(lock.this_process())
        holder.flush()
        # It is done while the second one waits.
        monkeypatch.setattr(lock.time, "sleep", lambda seconds: fcntl.flock(holder, fcntl.LOCK_UN))
        module.main()
    told = capsys.readouterr().err
    assert f"{out}: is being made by process {os.getpid()} on " in told
    assert told.endswith("the initial weights are made already\n")
    assert (out / "initial.json").read_text() == before
