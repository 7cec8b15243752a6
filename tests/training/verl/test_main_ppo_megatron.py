"""A run in verl's own trainer on a CPU: a mixture of experts, Megatron, replay of routes (R3).

vLLM is made to tell other experts than it has used (`false_routes.py`), which shows whether
Megatron uses what it is told.
"""

import importlib.util
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
import torch
import yaml
from safetensors import safe_open
from safetensors.torch import load_file

from respo import objectives
from respo.data import chain
from respo.files import read_json, read_parquet, write_json, write_parquet
from respo.policy import forward_with_routes, load_policy, policy_hash
from respo.training.verl import update_log
from respo.training.verl.processes import descendants

pytestmark = [pytest.mark.verl, pytest.mark.filterwarnings("ignore")]
for package in ("verl", "vllm", "megatron", "mbridge"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed", allow_module_level=True)

MODEL, EXPERTS = "qwen3-30b-a3b-base", 4
UPDATES, STALENESS, PROMPTS, GROUP = 8, 2, 4, 4
# The plugin joins these by itself.
MODULES = "cpu_platform,cpu_vllm,cpu_megatron,false_routes,coin_reward,record_updates"


@pytest.fixture
def start(tmp_path, verl_run, verl_study, megatron_options, cpu_environment, save_tiny_model):
    """Return a function that starts the run in `tmp_path/run`."""
    run_folder, data = tmp_path / "run", tmp_path / "data.parquet"
    weights = tmp_path / "initial" / "weights"
    save_tiny_model(weights, mixture_of_experts=True)
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
        routing_replay="R3",
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
            "overlong_buffer": 8,
            "resources.gpus_per_node": 1,
            "resources.parallelism": {},
            "resources.tokens_per_gpu": 256,
            "resources.offload": False,  # it goes into memory that CUDA pins
            "resources.verl_overrides": megatron_options,
        },
    )
    run = run.model_copy(update={"objective_code": objectives.code_hash("respo")})
    run_folder.mkdir()
    (run_folder / "config.yaml").write_text(yaml.safe_dump(run.model_dump(mode="json")))
    command = [sys.executable, "-m", "respo.training.verl", "--config", run_folder / "config.yaml"]
    command += ["--model", verl_study.config / "models" / f"{MODEL}.yaml"]
    command += ["--initial", initial, "--data", data]
    command += ["--silent-minutes", "5", "--stuck-minutes", "8"]
    records = tmp_path / "records"

    def start(log):
        # Numbered anew by each trainer.
        shutil.rmtree(records, ignore_errors=True)
        records.mkdir()
        given = {"VERL_USE_EXTERNAL_MODULES": MODULES, "RESPO_RECORD": str(records)}
        environment = cpu_environment | given
        return subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)

    return start


class Recorded:
    """What Megatron has trained on in a policy update (`record_updates.py`)."""

    def __init__(self, record, weights):
        batch = load_file(record)
        with safe_open(record, "pt") as file:
            self.grad_norm = float(file.metadata()["grad_norm"])
        self.policy = load_policy(weights)
        self.prompt_B, self.response_B = batch["prompts.lengths"], batch["responses.lengths"]
        length_B = self.prompt_B + self.response_B
        self.ids_BT = torch.zeros(len(length_B), int(length_B.max()), dtype=torch.long)
        for row, (prompt, end) in enumerate(zip(self.prompt_B, length_B, strict=True)):
            self.ids_BT[row, :prompt] = batch["prompts"][row, :prompt]
            self.ids_BT[row, prompt:end] = batch["responses"][row, : end - prompt]
        # Nothing follows from the last token.
        self.used_BT = torch.arange(self.ids_BT.shape[1]) < (length_B - 1).unsqueeze(1)
        self.told_BTLK = batch["routed_experts"][:, : self.ids_BT.shape[1]].long()
        self.old_log_prob_BT = batch["old_log_probs"]
        self.advantage_B = batch["advantages"][:, 0]


def check_first_update(recorded, local_update):
    """Of a rollout batch, made with the weights that the update begins with."""
    told_BTLK = recorded.told_BTLK
    with torch.no_grad():
        own_LBTK = forward_with_routes(recorded.policy, recorded.ids_BT)[1]
    # vLLM has used the policy's own experts, but where rounding decides, and told the next ones.
    used = ((told_BTLK - 1) % EXPERTS).sort(dim=-1).values
    same_BT = (used == own_LBTK.permute(1, 2, 0, 3).sort(dim=-1).values).all(dim=-1).all(dim=-1)
    assert same_BT[recorded.used_BT].float().mean() > 0.9
    given = (
        recorded.policy,
        recorded.ids_BT,
        recorded.prompt_B,
        recorded.response_B,
        recorded.advantage_B,
    )
    with_told, with_own = local_update(*given, told_BTLK), local_update(*given)

    def distance(update):
        with torch.no_grad():
            difference_BT = update.log_prob_BT() - recorded.old_log_prob_BT
        return difference_BT[update.mask_BT].abs().mean()

    # bfloat16 against float32: 0.0006 measured, and 0.006 to 0.011 with the policy's own experts.
    assert distance(with_told) < 0.002
    assert distance(with_own) > 4 * distance(with_told)
    # On policy, where c = 1.
    assert recorded.grad_norm == pytest.approx(with_told.grad_norm("respo"), rel=0.02)


def logged(run):
    try:
        return len((run / update_log.FILE).read_text().splitlines())
    except FileNotFoundError:
        return 0


def test_a_killed_run_is_resumed_and_trains_with_the_experts_that_vllm_tells(
    tmp_path, start, local_update
):
    run, log, records = tmp_path / "run", tmp_path / "log", tmp_path / "records"
    initial, resumed = tmp_path / "initial" / "weights", tmp_path / "resumed"
    checkpoints = run / "verl" / "checkpoints"
    with log.open("w") as output:
        # Killed in the second of four rollout batches or later, after a checkpoint.
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
        step = int((checkpoints / "latest_checkpointed_iteration.txt").read_text())
        assert 1 <= step < UPDATES // STALENESS
        saved = checkpoints / f"global_step_{step}" / "actor" / "model" / "huggingface"
        shutil.copytree(saved, resumed)
        check_first_update(Recorded(records / "1.safetensors", initial), local_update)
        assert start(output).wait() == 0, log.read_text()[-6000:]
    assert f"{run}: continues after update {step * STALENESS}\n" in log.read_text()
    check_first_update(Recorded(records / "1.safetensors", resumed), local_update)

    rows = update_log.read(run, STALENESS)
    assert [row["update"] for row in rows] == list(range(1, UPDATES + 1))
    for row in rows:
        assert row["responses"] == PROMPTS * GROUP
        assert 0 < row["grad_norm"] < 5
    # The first update of a rollout batch is on-policy, whatever experts vLLM has told; the second
    # is not.
    spread = [row["log_ratio_q95"] - row["log_ratio_q05"] for row in rows]
    assert max(spread[::2]) < 0.1 < min(spread[1::2])

    trained = read_json(run / "train.json")
    assert trained["update"] == UPDATES
    updates = read_parquet(run / "metrics.parquet")["update"].to_pylist()
    assert updates == list(range(1, UPDATES + 1))
    for update in (2, UPDATES):
        folder = run / "checkpoints" / str(update)
        assert policy_hash(folder) == trained["checkpoints"][str(update)]
        policy, before = load_policy(folder), load_policy(initial)
        assert policy.weights.keys() == before.weights.keys()
        # Adam moves the weights, all experts' too, by about its learning rate; those of norms,
        # which are 1, by less than bfloat16 can tell.
        for name, weight in policy.weights.items():
            if "norm" not in name:
                assert (weight - before.weights[name]).abs().amax(dim=(-2, -1)).min() > 2e-4, name
