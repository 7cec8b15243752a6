"""verl's own trainer, `main_ppo`, on a CPU: rollouts by vLLM, FSDP, our objective, our launcher."""

import importlib.util
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
import torch
import yaml

from respo.data import chain
from respo.files import write_parquet
from respo.training.verl import update_log
from respo.training.verl.options import Paths, verl_options
from respo.training.verl.processes import descendants

pytestmark = [pytest.mark.verl, pytest.mark.filterwarnings("ignore")]
if importlib.util.find_spec("verl") is None or importlib.util.find_spec("vllm") is None:
    pytest.skip("verl or vLLM is not installed", allow_module_level=True)

UPDATES, STALENESS, PROMPTS, GROUP = 16, 2, 4, 4


REWARD = """
def compute_score(data_source, solution_str, ground_truth, extra_info=None, **_):
    return 1.0 if sum(map(ord, solution_str)) % 2 else -1.0
"""
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['content'] }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>{% endif %}"
)


def save_model(folder):
    """A Qwen3 that verl, which wants a tokenizer of Qwen's kind, and vLLM's CPU attention take."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    words = [*special, "\n", *map(chr, range(32, 127))]
    model = models.WordLevel({word: index for index, word in enumerate(words)}, unk_token=" ")
    characters = Tokenizer(model)
    characters.pre_tokenizer = pre_tokenizers.Split(pattern="", behavior="isolated")
    characters.decoder = decoders.Fuse()
    PreTrainedTokenizerFast(
        tokenizer_object=characters,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=["<|im_start|>"],
        chat_template=TEMPLATE,
    ).save_pretrained(folder)
    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=len(words),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=1024,
        tie_word_embeddings=False,
        eos_token_id=2,
        pad_token_id=0,
        bos_token_id=None,
    )
    Qwen3ForCausalLM(config).save_pretrained(folder)


@pytest.fixture
def start(tmp_path, verl_run, cpu_options, cpu_environment):
    """Return a function that starts the launcher on the run in `tmp_path/run`."""
    weights, run_folder, data = tmp_path / "weights", tmp_path / "run", tmp_path / "data.parquet"
    save_model(weights)
    prompts = chain.distinct_prompts(1, 2, 40, seed=5, held_out=False)
    columns = {"id": prompts, "prompt": prompts, "answer": [chain.answer(each) for each in prompts]}
    write_parquet(data, pa.table(columns), {})
    run, resources = verl_run(
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
        },
    )
    run_folder.mkdir()
    (run_folder / "config.yaml").write_text(yaml.safe_dump(run.model_dump(mode="json")))
    module = [sys.executable, "-m", "respo.training.verl.prompts"]
    paths = ["--config", run_folder / "config.yaml", "--data", data, "--weights", weights]
    subprocess.run([*module, *paths], check=True)
    options = verl_options(run, resources, Paths(run=run_folder, weights=weights))
    # Random answers are never right. Of two settings of an option, Hydra takes the last one.
    (tmp_path / "reward.py").write_text(REWARD)
    options.append(f"reward.custom_reward_function.path={tmp_path / 'reward.py'}")
    options += cpu_options

    def start(log):
        limits = ["--silent-minutes", "5", "--stuck-minutes", "8"]
        launcher = ["-m", "respo.training.verl.launch", "--run", run_folder, *limits, "--"]
        return subprocess.Popen(
            [sys.executable, *launcher, sys.executable, "-m", "verl.trainer.main_ppo", *options],
            env=cpu_environment | {"VERL_FILE_LOGGER_PATH": str(tmp_path / "steps.jsonl")},
            stdout=log,
            stderr=subprocess.STDOUT,
        )

    return start


def logged(run):
    try:
        return len((run / update_log.FILE).read_text().splitlines())
    except FileNotFoundError:
        return 0


def test_a_killed_run_is_resumed_and_ends_at_its_last_update(tmp_path, start):
    run, log = tmp_path / "run", tmp_path / "log"
    saved = run / "verl" / "checkpoints" / "latest_checkpointed_iteration.txt"
    with log.open("w") as output:
        # Killed in one of the first of eight rollout batches, after the checkpoint of the first.
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
        assert start(output).wait() == 0, log.read_text()[-6000:]
    assert int(saved.read_text()) == UPDATES // STALENESS
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
    # The first update of a rollout batch is on-policy but for the rounding of bfloat16 in batches
    # of another shape, the second is not.
    spread = [row["log_ratio_q95"] - row["log_ratio_q05"] for row in rows]
    assert max(spread[::2]) < 0.1 < min(spread[1::2])
    # verl's own metrics of a step are means over its updates.
    steps = [json.loads(line) for line in (tmp_path / "steps.jsonl").read_text().splitlines()]
    last = [step["data"] for step in steps if step["step"] == UPDATES // STALENESS][-1]
    for ours, theirs in (("grad_norm", "actor/grad_norm"), ("tokens", "actor/respo/tokens")):
        mean = sum(row[ours] for row in rows[-STALENESS:]) / STALENESS
        assert last[theirs] == pytest.approx(mean, rel=1e-5)
