"""A run in verl's own trainer on a CPU: rollouts by vLLM, FSDP, our objective, our program."""

import importlib.util
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
import yaml

from respo import objectives
from respo.data import chain
from respo.files import read_parquet, write_json, write_parquet
from respo.policy import load_policy, policy_hash, token_log_probs
from respo.training.local.metrics import METRICS
from respo.training.verl import update_log
from respo.training.verl.processes import descendants

pytestmark = [pytest.mark.verl, pytest.mark.filterwarnings("ignore")]
if importlib.util.find_spec("verl") is None or importlib.util.find_spec("vllm") is None:
    pytest.skip("verl or vLLM is not installed", allow_module_level=True)

UPDATES, STALENESS, PROMPTS, GROUP = 10, 2, 4, 4
MODEL = "qwen3-1.7b-base"


@pytest.fixture
def start(tmp_path, verl_run, verl_study, cpu_options, cpu_environment, save_tiny_model):
    """Return a function that starts the run in `tmp_path/run`."""
    run_folder, data = tmp_path / "run", tmp_path / "data.parquet"
    weights = tmp_path / "initial" / "weights"
    save_tiny_model(weights)
    initial = weights.with_name("initial.json")
    write_json(initial, {"weights_sha256": policy_hash(weights)})
    prompts = chain.distinct_prompts(1, 2, 40, seed=5, held_out=False)
    columns = {"id": prompts, "prompt": prompts, "answer": [chain.answer(each) for each in prompts]}
    write_parquet(data, pa.table(columns), {})
    run, _ = verl_run(
        MODEL,
        staleness=STALENESS,
        updates=UPDATES,
        mini_batch=PROMPTS,
        rollouts_per_prompt=GROUP,
        checkpoints=[2, UPDATES],
        optimizer={
            "learning_rate": 1e-3,
            "warmup_updates": 0,
            "betas": [0.9, 0.95],
            "weight_decay": 0.1,
            "gradient_clip": 1.0,
        },
        evaluation={"updates": [UPDATES], "temperature": 1.0, "top_p": 1.0, "seed": 1},
        model_changes={
            "max_prompt_tokens": 16,
            "max_response_tokens": 24,
            "master_weights": "fp32",
            "resources.gpus_per_node": 1,
            "resources.parallelism": {},
            "resources.tokens_per_gpu": 256,
            "resources.verl_overrides": cpu_options,
        },
    )
    run = run.model_copy(update={"objective_code": objectives.code_hash("respo")})
    run_folder.mkdir()
    (run_folder / "config.yaml").write_text(yaml.safe_dump(run.model_dump(mode="json")))
    command = [sys.executable, "-m", "respo.training.verl", "--config", run_folder / "config.yaml"]
    command += ["--model", verl_study.config / "models" / f"{MODEL}.yaml"]
    command += ["--initial", initial, "--data", data]
    command += ["--silent-minutes", "5", "--stuck-minutes", "8"]
    # The plugin joins these by itself.
    modules = {"VERL_USE_EXTERNAL_MODULES": "cpu_platform,cpu_vllm,coin_reward"}

    def start(log):
        environment = cpu_environment | modules
        return subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)

    return start


def logged(run):
    try:
        return len((run / update_log.FILE).read_text().splitlines())
    except FileNotFoundError:
        return 0


def shard(state):
    """The weights in a state of verl of one rank, which are whole."""
    path = state / "actor" / "model_world_size_1_rank_0.pt"
    tensors = torch.load(path, map_location="cpu", weights_only=False)
    return {name: getattr(tensor, "_local_tensor", tensor) for name, tensor in tensors.items()}


def test_a_killed_run_is_resumed_and_ends_at_its_last_update(tmp_path, start):
    run, log = tmp_path / "run", tmp_path / "log"
    checkpoints = run / "verl" / "checkpoints"
    saved = checkpoints / "latest_checkpointed_iteration.txt"
    with log.open("w") as output:
        # Killed in one of the first of five rollout batches, after the checkpoint of the first.
        process = start(output)
        while logged(run) < 3 and process.poll() is None:
            time.sleep(0.05)
        started = descendants(process.pid)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert logged(run) >= 3, log.read_text()[-6000:]
        until = time.monotonic() + 60
        while any(Path(f"/proc/{each}/cmdline").exists() for each in started):
            assert time.monotonic() < until
            time.sleep(0.2)
        assert 1 <= int(saved.read_text()) < UPDATES // STALENESS
        weights = shard(checkpoints / "global_step_1")
        assert start(output).wait() == 0, log.read_text()[-6000:]
        assert start(output).wait() == 0
    assert f"{run}: continues after update" in log.read_text()
    assert log.read_text().endswith(f"{run}: is trained already\n")

    rows = update_log.read(run, STALENESS)
    assert [row["update"] for row in rows] == list(range(1, UPDATES + 1))
    for row in rows:
        assert row["responses"] == PROMPTS * GROUP
        assert row["tokens"] == pytest.approx(row["response_length"] * row["responses"])
        assert -1 <= row["score"] <= 1
        in_branches = sum(map(sum, row["branches"]["responses"]))
        assert in_branches == (1 - row["zero_advantage_groups"]) * row["responses"]
        assert row["grad_norm"] > 0
        assert row["clip_fraction_pos"] is not None
        assert 0 < row["entropy"] < np.log(98)
    # The first update of a rollout batch is on-policy but for the rounding of bfloat16 in batches
    # of another shape, the second is not.
    spread = [row["log_ratio_q95"] - row["log_ratio_q05"] for row in rows]
    assert max(spread[::2]) < 0.1 < min(spread[1::2])
    # verl's own metrics of a step are means over its updates.
    steps = [json.loads(line) for line in (run / "steps" / "2.jsonl").read_text().splitlines()]
    last = [step["data"] for step in steps if step["step"] == UPDATES // STALENESS][-1]
    for ours, theirs in (("grad_norm", "actor/grad_norm"), ("tokens", "actor/respo/tokens")):
        mean = sum(row[ours] for row in rows[-STALENESS:]) / STALENESS
        assert last[theirs] == pytest.approx(mean, rel=1e-5)

    metrics = read_parquet(run / "metrics.parquet")
    assert metrics.schema.names == list(METRICS)
    assert metrics["update"].to_pylist() == list(range(1, UPDATES + 1))
    assert metrics["entropy"].to_pylist() == [row["entropy"] for row in rows]
    # The seconds of the last steps are those that verl measured, up to what lies between steps.
    seconds = metrics["seconds"].to_numpy().reshape(-1, STALENESS).sum(axis=1)
    assert seconds[-1] == pytest.approx(last["timing_s/step"], rel=0.5)
    train = json.loads((run / "train.json").read_text())
    assert (train["update"], train["restarts"]) == (UPDATES, 1)
    assert train["tokens_generated"] == sum(row["tokens"] for row in rows)
    assert {"verl", "torch", "vllm"} <= {name.split("-")[0] for name in train["versions"]}
    assert not (run / "verl").exists()

    # The first checkpoint is what verl had, in bfloat16.
    merged = load_policy(run / "checkpoints" / "2")
    for name, weight in merged.weights.items():
        assert torch.equal(weight, weights[name].bfloat16().float()), name
    assert train["checkpoints"] == {
        str(update): policy_hash(run / "checkpoints" / str(update)) for update in (2, UPDATES)
    }
    compare_log_probs(run / "checkpoints" / str(UPDATES))


def compare_log_probs(folder):
    """The last checkpoint is read alike by transformers, with its tokenizer, and by the project."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    chat = [{"role": "user", "content": "3+5*2="}]
    text = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    tokens_BT = torch.tensor([tokenizer(text + "\\boxed{6}")["input_ids"]])
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    with torch.no_grad():
        logits_BTV = model(tokens_BT).logits
    expected_BT = logits_BTV.log_softmax(-1)[:, :-1].gather(2, tokens_BT[:, 1:, None]).squeeze(2)
    found_BT, _ = token_log_probs(load_policy(folder), tokens_BT, 1.0)
    torch.testing.assert_close(found_BT, expected_BT, atol=1e-4, rtol=1e-4)
