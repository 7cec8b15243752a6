"""A dense model in verl's own trainer with FSDP, killed in the middle and resumed."""

import importlib.util
import json

import numpy as np
import pytest
import torch

from respo.files import read_json
from respo.parquet import read_parquet
from respo.policy import load_policy, policy_hash, token_log_probs
from respo.training.local.metrics import METRICS
from respo.training.verl import update_log

pytestmark = [pytest.mark.verl, pytest.mark.filterwarnings("ignore")]
for package in ("verl", "vllm", "megatron", "mbridge"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def dense(study):
    return study.models["dense"]


@pytest.fixture(scope="module")
def trained(dense):
    return read_json(dense.run / "train.json")


@pytest.fixture(scope="module")
def rows(dense, study):
    return update_log.read(dense.run, study.staleness)


def shard(state):
    """The weights in a state of verl of one rank, which are whole."""
    path = state / "actor" / "model_world_size_1_rank_0.pt"
    tensors = torch.load(path, map_location="cpu", weights_only=False)
    return {name: getattr(tensor, "_local_tensor", tensor) for name, tensor in tensors.items()}


def test_a_trained_run_is_not_trained_again(dense, study, start, tmp_path):
    results = study.results
    command = ["respo.training.verl", "--config", dense.run / "config.yaml"]
    command += ["--model", results.parents[1] / "config" / "models" / "dense.yaml"]
    command += ["--initial", results / "initial" / "dense" / "initial.json"]
    command += ["--data", results / "data" / "train" / "chain.parquet"]
    before = (dense.run / "train.json").stat().st_mtime_ns
    log = tmp_path / "log"
    with log.open("w") as output:
        assert start(output, *command).wait() == 0, log.read_text()
    assert log.read_text().endswith(f"{dense.run}: is trained already\n")
    assert (dense.run / "train.json").stat().st_mtime_ns == before


def test_every_update_is_logged(rows, study):
    assert [row["update"] for row in rows] == list(range(1, study.updates + 1))
    for row in rows:
        assert row["responses"] == study.responses
        assert row["tokens"] == pytest.approx(row["response_length"] * row["responses"])
        assert -1 <= row["score"] <= 1
        in_branches = sum(map(sum, row["branches"]["responses"]))
        assert in_branches == (1 - row["zero_advantage_groups"]) * row["responses"]
        assert row["grad_norm"] > 0
        assert row["clip_fraction_pos"] is not None
        assert 0 < row["entropy"] < np.log(98)


def test_the_second_update_of_a_rollout_batch_is_off_policy(rows):
    # The first update of a rollout batch is on-policy but for the rounding of bfloat16 in batches
    # of another shape, the second is not.
    spread = [row["log_ratio_q95"] - row["log_ratio_q05"] for row in rows]
    assert max(spread[::2]) < 0.1 < min(spread[1::2])


def test_metrics_are_those_of_the_log_and_of_verl(dense, trained, rows, study):
    run, updates, staleness = dense.run, study.updates, study.staleness
    # verl's own metrics of a step are means over its updates.
    steps = [json.loads(line) for line in (run / "steps" / "2.jsonl").read_text().splitlines()]
    last = [step["data"] for step in steps if step["step"] == updates // staleness][-1]
    for ours, theirs in (("grad_norm", "actor/grad_norm"), ("tokens", "actor/respo/tokens")):
        mean = sum(row[ours] for row in rows[-staleness:]) / staleness
        assert last[theirs] == pytest.approx(mean, rel=1e-5)
    metrics = read_parquet(run / "metrics.parquet")
    assert metrics.schema.names == list(METRICS)
    assert metrics["update"].to_pylist() == list(range(1, updates + 1))
    assert metrics["entropy"].to_pylist() == [row["entropy"] for row in rows]
    # The seconds of the last steps are those that verl measured, up to what lies between steps.
    seconds = metrics["seconds"].to_numpy().reshape(-1, staleness).sum(axis=1)
    assert seconds[-1] == pytest.approx(last["timing_s/step"], rel=0.5)
    assert trained["tokens_generated"] == sum(row["tokens"] for row in rows)


def test_the_trained_run(dense, trained, study):
    assert (trained["update"], trained["restarts"]) == (study.updates, 1)
    assert {"verl", "torch", "vllm"} <= {name.split("-")[0] for name in trained["versions"]}
    assert not (dense.run / "verl").exists()
    assert trained["checkpoints"] == {
        str(update): policy_hash(dense.run / "checkpoints" / str(update))
        for update in (study.staleness, study.updates)
    }


def test_a_checkpoint_is_what_verl_had_in_bfloat16(dense, study):
    weights = shard(dense.killed / "checkpoints" / "global_step_1")
    merged = load_policy(dense.run / "checkpoints" / str(study.staleness))
    for name, weight in merged.weights.items():
        assert torch.equal(weight, weights[name].bfloat16().float()), name


def test_transformers_and_the_project_read_a_checkpoint_alike(dense, study):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = dense.run / "checkpoints" / str(study.updates)
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
