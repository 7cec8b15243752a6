"""vLLM itself, on a CPU, against transformers' forward pass."""

import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tokenizers
import torch
from tokenizers import decoders, models, pre_tokenizers

from respo.evaluation.engines.vllm import seed_of
from respo.parquet import made_from
from respo.policy import Policy, Tokenizer, load_policy, policy_hash, save_policy
from respo.policy.chat import load_chat
from respo.policy.weights import expected_shapes


def needs_vllm(test):
    """Run a test only where vLLM is installed."""
    missing = importlib.util.find_spec("vllm") is None
    test = pytest.mark.skipif(missing, reason="vLLM is not installed")(test)
    return pytest.mark.filterwarnings("ignore")(pytest.mark.verl(test))


ROWS = {"id": ["c", "a", "b"], "prompt": ["1+2*3-4=", "7=", "5-6="], "answer": ["5", "7", "9"]}
SAMPLES, LIMIT, TEMPERATURE, TOP_P = 200, 24, 0.8, 0.9
TEMPLATE = (
    "{% for message in messages %}={{ message['content'] }};{% endfor %}"
    "{% if enable_thinking is defined and not enable_thinking %}00{% endif %}"
)
ON_A_CPU = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "TORCH_COMPILE_DISABLE": "1",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
}


def test_a_seed_depends_on_seed_problem_and_sample():
    seed = seed_of(1, "a", 0)
    assert seed == seed_of(1, "a", 0)
    # The first 8 bytes of SHA-256 of "1 0 a", little-endian, halved: 68c10d44c6849ea6...
    assert seed == 0xA69E84C6440DC168 >> 1
    others = {seed_of(2, "a", 0), seed_of(1, "b", 0), seed_of(1, "a", 1), seed_of(1, "1 a", 1)}
    assert len(others | {seed}) == 5


def tokenizer() -> Tokenizer:
    """One token per character, and one special token: no other is left out of texts."""
    words = ["<eos>", *"0123456789+-*=;,abc"]
    backend = tokenizers.Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}))
    backend.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    backend.decoder = decoders.Fuse()
    backend.add_special_tokens(["<eos>"])
    config = {"eos_token": "<eos>", "pad_token": "<eos>"}
    return Tokenizer(
        backend, config | {"tokenizer_class": "PreTrainedTokenizerFast"}, pad_id=0, eos_id=0
    )


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> Path:
    """A random policy whose distributions are neither flat nor sharp; head_dim 32 for vLLM."""
    config = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "vocab_size": 20,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "intermediate_size": 64,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
        "tie_word_embeddings": False,
        "pad_token_id": 0,
        "eos_token_id": 0,
        "bos_token_id": None,
        "hidden_act": "silu",
        "dtype": "float32",
    }
    generator = torch.Generator().manual_seed(0)
    weights = {
        name: torch.randn(shape, generator=generator) * 0.2 + (1.0 if "norm" in name else 0.0)
        for name, shape in expected_shapes(config).items()
    }
    folder = tmp_path_factory.mktemp("run") / "96"
    save_policy(Policy(config, weights, tokenizer()), folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    pq.write_table(pa.table(ROWS), folder.parent / "benchmark.parquet")
    train = {"checkpoints": {"96": policy_hash(folder)}}
    (folder.parent / "train.json").write_text(json.dumps(train))
    return folder


def start(
    checkpoint: Path, out: Path, *program: str, **changes: object
) -> subprocess.CompletedProcess:
    options = {
        "engine": "vllm",
        "checkpoint": checkpoint,
        "train": checkpoint.parent / "train.json",
        "benchmark": checkpoint.parent / "benchmark.parquet",
        "samples": SAMPLES,
        "temperature": TEMPERATURE,
        "top_p": TOP_P,
        "max_response_tokens": LIMIT,
        "thinking": "false",
        "dtype": "float32",
        "seed": 7,
        "out": out,
        **changes,
    }
    arguments = [
        text
        for name, value in options.items()
        for text in (f"--{name.replace('_', '-')}", str(value))
    ]
    program = program or ("-m", "respo.evaluation.generate")
    return subprocess.run(
        [sys.executable, *program, *arguments],
        env=os.environ | ON_A_CPU,
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def whole(checkpoint) -> pa.Table:
    out = checkpoint.parent / "whole.parquet"
    done = start(checkpoint, out)
    assert done.returncode == 0, done.stderr
    return pq.read_table(out)


def how_made(table: pa.Table) -> dict[str, object]:
    """Provenance without the revision, which somebody may change while the tests run."""
    provenance = made_from(table)
    provenance.pop("earlier", None)
    del provenance["environment"]["code"]
    return provenance


def encoded(checkpoint: Path, table: pa.Table) -> list[tuple[list[int], list[int]]]:
    """Token ids of each prompt and its response."""
    chat, tokenizer = load_chat(checkpoint, False), load_policy(checkpoint).tokenizer
    return [
        (
            chat.encode(row["prompt"]),
            tokenizer.encode(row["response"]) + [tokenizer.eos_id] * (not row["truncated"]),
        )
        for row in table.to_pylist()
    ]


@needs_vllm
def test_rows_and_provenance(checkpoint, whole):
    assert whole["problem_id"].to_pylist() == [x for x in "cab" for _ in range(SAMPLES)]
    assert whole["sample"].to_pylist() == [*range(SAMPLES)] * 3
    assert whole["prompt"].to_pylist()[SAMPLES] == "7="
    provenance = made_from(whole)
    versions = provenance.pop("environment")
    assert versions.keys() >= {"vllm", "torch", "transformers", "code"}
    chat = load_chat(checkpoint, False)
    assert provenance.pop("benchmark_sha256")
    assert provenance.pop("benchmark") == {}
    assert provenance.pop("sampler_code")
    assert provenance == {
        "checkpoint_sha256": policy_hash(checkpoint),
        "sampling": {
            "samples": SAMPLES,
            "temperature": TEMPERATURE,
            "top_p": TOP_P,
            "max_response_tokens": LIMIT,
            "seed": 7,
        },
        "engine": "vllm",
        "device": "cpu",
        "dtype": "float32",
        "tensor_parallel": 1,
        "batch_invariant": False,
        "thinking": False,
        "chat_template_sha256": chat.template_sha256,
    }
    (kept,) = (checkpoint.parent / ".shards").glob("*/*")
    assert kept.samefile(checkpoint.parent / "whole.parquet")


@needs_vllm
def test_lengths(checkpoint, whole):
    ended = 0
    for row, (_, ids) in zip(whole.to_pylist(), encoded(checkpoint, whole), strict=True):
        # The end token counts, and is not part of the text.
        assert row["response_tokens"] == len(ids)
        assert not row["truncated"] or len(ids) == LIMIT
        assert "<eos>" not in row["response"]
        ended += not row["truncated"]
    assert 100 < ended < 3 * SAMPLES - 100


@needs_vllm
def test_distribution(checkpoint, whole):
    """Every token is of the nucleus, and they are as surprising as they should be.

    The surprisals of tokens minus the entropies of their distributions are a martingale: its
    sum over its standard deviation is standard normal.
    """
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(checkpoint)
    difference = variance = 0.0
    for prompt, ids in encoded(checkpoint, whole):
        with torch.no_grad():
            logits_TV = model(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1]
        prob_TV = (logits_TV.double() / TEMPERATURE).softmax(-1)
        ordered_TV, order_TV = prob_TV.sort(-1, descending=True)
        before_TV = ordered_TV.cumsum(-1) - ordered_TV
        inside_TV = torch.zeros_like(prob_TV, dtype=torch.bool)
        inside_TV.scatter_(-1, order_TV, before_TV < TOP_P + 1e-5)
        drawn_T1 = torch.tensor(ids)[:, None]
        assert inside_TV.gather(-1, drawn_T1).all()
        nucleus_TV = prob_TV * inside_TV
        nucleus_TV /= nucleus_TV.sum(-1, keepdim=True)
        surprisal_TV = -nucleus_TV.clamp_min(1e-300).log()
        entropy_T = (nucleus_TV * surprisal_TV).sum(-1)
        difference += (surprisal_TV.gather(-1, drawn_T1)[:, 0] - entropy_T).sum().item()
        variance += ((nucleus_TV * surprisal_TV**2).sum(-1) - entropy_T**2).sum().item()
    assert abs(difference) < 4 * variance**0.5


@needs_vllm
def test_responses_of_a_problem_differ(whole):
    texts = whole["response"].to_pylist()
    for first in range(0, 3 * SAMPLES, SAMPLES):
        assert len(set(texts[first : first + SAMPLES])) > SAMPLES / 4


DIES = f"""
import os, signal
from respo.evaluation import generate, shards

shards.SECONDS, add = 0.0, shards.Shards.add

def dying(self, responses):
    add(self, responses)
    if len(list(self.read({SAMPLES}))) > {SAMPLES}:
        os.kill(os.getpid(), signal.SIGKILL)

shards.Shards.add = dying
generate.main()
"""


@needs_vllm
def test_any_part_again_is_the_same_and_a_killed_job_continues(checkpoint, whole, tmp_path):
    out = tmp_path / "out.parquet"
    killed = start(checkpoint, out, "-c", DIES)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not out.exists()
    assert len(list((tmp_path / ".shards").glob("*/*"))) > 1
    done = start(checkpoint, out)
    assert done.returncode == 0, done.stderr
    there = int(done.stderr.split(f"/{3 * SAMPLES} responses are there already")[0].split()[-1])
    assert SAMPLES < there < 3 * SAMPLES
    # The others were computed without those that were there.
    again = pq.read_table(out)
    assert again.to_pylist() == whole.to_pylist()
    assert how_made(again) == how_made(whole)
    assert [path.name for path in (tmp_path / ".shards").glob("*/*")] == ["finished.parquet"]


HANGS = """
import time
from respo.evaluation import generate, shards
from respo.evaluation.engines.vllm import VllmEngine

shards.SECONDS, step, steps = 0.0, VllmEngine._step, []

def hanging(self, engine):
    steps.append(engine)
    if len(steps) == 15:
        time.sleep(200)
    return step(self, engine)

if __name__ == "__main__":  # workers import this
    VllmEngine._step = hanging
    generate.main()
"""


@needs_vllm
def test_a_job_that_hangs_ends_with_its_workers(checkpoint, whole, tmp_path):
    """As long as a worker lives it has the standard error, which is read to its end."""
    out, program = tmp_path / "out.parquet", tmp_path / "hangs.py"
    program.write_text(HANGS)
    begin = time.monotonic()
    done = start(checkpoint, out, str(program), tensor_parallel=2, silent_minutes=0.2)
    assert done.returncode == 1
    assert time.monotonic() - begin < 150
    assert "Timeout (0:00:12)!" in done.stderr
    assert " in hanging\n" in done.stderr
    done = start(checkpoint, out, tensor_parallel=2)
    assert done.returncode == 0, done.stderr
    assert f"/{3 * SAMPLES} responses are there already" in done.stderr


@needs_vllm
def test_more_samples_cost_the_new_ones(checkpoint, whole, tmp_path):
    out = tmp_path / "out.parquet"
    done = start(checkpoint, out, samples=SAMPLES // 2)
    assert done.returncode == 0, done.stderr
    out.unlink()  # as snakemake does
    done = start(checkpoint, out)
    assert f"{3 * SAMPLES // 2}/{3 * SAMPLES} responses are there already" in done.stderr
    assert pq.read_table(out).to_pylist() == whole.to_pylist()


@needs_vllm
def test_without_chance_as_transformers_in_two_parts(checkpoint, tmp_path):
    from transformers import AutoModelForCausalLM

    out = tmp_path / "out.parquet"
    done = start(checkpoint, out, samples=1, top_p=1e-6, thinking="none", tensor_parallel=2)
    assert done.returncode == 0, done.stderr
    model = AutoModelForCausalLM.from_pretrained(checkpoint)
    tokenizer = load_policy(checkpoint).tokenizer
    for row in pq.read_table(out).to_pylist():
        prompt = torch.tensor([tokenizer.encode(f"={row['prompt']};")])
        ids = model.generate(prompt, do_sample=False, max_new_tokens=LIMIT)[0]
        assert row["response"] == tokenizer.decode(ids[prompt.shape[1] :].tolist())


@needs_vllm
def test_vllm_does_not_start(checkpoint, tmp_path):
    done = start(checkpoint, tmp_path / "out.parquet", tensor_parallel=3)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"error: {checkpoint}: vLLM does not start (")
    assert "heads (4) must be divisible by tensor parallel size (3).); the lines above" in last
    assert last.endswith("Where memory is short, take more GPUs (--tensor-parallel)")
