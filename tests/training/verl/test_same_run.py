"""The same run by the local trainer and by verl's: one meaning of data, reward, update and metrics.

verl's own `main_ppo` (vLLM, FSDP, Ray) trains a small policy on a CPU in float32, and each of its
mini-batches is written down. The local trainer then takes its updates on verl's own responses,
which is what can be compared number by number: each trainer draws its own.
"""

import importlib.util
import subprocess
import sys
from types import SimpleNamespace

import pyarrow as pa
import pytest
import safetensors
import torch
import yaml
from tokenizers import Regex, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from respo import objectives
from respo.config.schema import RunConfig, WarmStart
from respo.data import chain
from respo.files import read_json, write_json
from respo.parquet import read_parquet, write_parquet
from respo.policy import (
    Policy,
    Samples,
    Tokenizer,
    load_policy,
    policy_hash,
    save_policy,
    token_log_probs,
)
from respo.policy.tokenizer import VOCABULARY
from respo.policy.weights import expected_shapes
from respo.training.local import update as update_module
from respo.training.local.metrics import BRANCH_SUMS
from respo.training.local.optimizer import AdamW
from respo.training.local.prompts import load_prompts
from respo.training.local.responses import assemble
from respo.training.local.update import policy_update
from respo.training.local.warm_start import warm_start

pytestmark = [pytest.mark.verl, pytest.mark.filterwarnings("ignore")]
if importlib.util.find_spec("verl") is None or importlib.util.find_spec("vllm") is None:
    pytest.skip("verl or vLLM is not installed", allow_module_level=True)

UPDATES, STALENESS, PROMPTS, GROUP = 4, 2, 16, 8
MODEL = "qwen3-1.7b-base"
MAX_PROMPT, MAX_RESPONSE = 8, 24
ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
# verl computes in bfloat16 if it is not told otherwise. Log-probabilities of a token then agree to
# 0.005 in the mean and 0.15 at most, the norm of the gradient to 0.2 % in the first update and 2 %
# in the fourth.
IN_FLOAT32 = [
    f"+{ACTOR}.fsdp_config.mixed_precision={{param_dtype: fp32, reduce_dtype: fp32}}",
    f"{ROLLOUT}.dtype=float32",
    f"{ROLLOUT}.calculate_log_probs=True",
]
# Of the first update and of the later ones, relative and absolute. What was seen: 3e-6 for the norm
# of the gradient, 1e-7 for the loss, in all four.
FIRST, LATER = 2e-5, 1e-4
# Metrics that follow from tokens and rewards alone.
EXACT = ("score", "response_length", "capped_share", "repetition", "zero_advantage_groups")
TRAINING = {
    "updates": UPDATES,
    "mini_batch": PROMPTS,
    "rollouts_per_prompt": GROUP,
    "checkpoints": [UPDATES],
    "reward": "math_verify",
    "optimizer": {
        "learning_rate": 1e-3,
        "warmup_updates": 0,
        "betas": [0.9, 0.95],
        "weight_decay": 0.1,
        "gradient_clip": 1.0,
    },
}
ARCHITECTURE = {
    "model_type": "qwen3",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,  # vLLM's attention on CPUs takes 32 and more
    "intermediate_size": 128,
}
WARM_START = {
    "data": "train",
    "steps": 60,
    "batch": 32,
    "learning_rate": 1e-2,
    "direct": 0.5,
    "corrupted": 0.1,
    "seed": 0,
}
# The end of sequence as Qwen names it, and the padding, too, as in Qwen3's base models. (verl tells
# transformers the padding token, whose embedding then gets no gradient: a policy that samples it
# before the end would learn a little differently in the local trainer.)
END = "<|im_end|>"
# A prompt is its message.
TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def tokenizer():
    words = [END, *VOCABULARY[2:], "\n"]
    backend = Backend(models.WordLevel({word: index for index, word in enumerate(words)}))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(r"\\boxed\{|."), "isolated")
    backend.decoder = decoders.Fuse()
    backend.add_special_tokens([END])
    config = {
        "eos_token": END,
        "pad_token": END,
        "tokenizer_class": "PreTrainedTokenizerFast",
        "chat_template": TEMPLATE,
    }
    return Tokenizer(backend, config, pad_id=0, eos_id=0)


def initial_policy(data):
    """A policy that boxes a digit most of the time, often the wrong one."""
    words = tokenizer()
    config = ARCHITECTURE | {
        "architectures": ["Qwen3ForCausalLM"],
        "vocab_size": words.backend.get_vocab_size(),
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
        "tie_word_embeddings": False,
        "pad_token_id": words.pad_id,
        "eos_token_id": words.eos_id,
        "bos_token_id": None,
        "dtype": "float32",
    }
    generator = torch.Generator().manual_seed(0)
    weights = {
        name: torch.randn(shape, generator=generator) * 0.05 + (1.0 if "norm" in name else 0.0)
        for name, shape in expected_shapes(config).items()
    }
    prompts = load_prompts(data, words, MAX_PROMPT)
    return warm_start(Policy(config, weights, words), prompts, WarmStart(**WARM_START), "test")[0]


def recorded(path):
    with safetensors.safe_open(path, "pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        made = {name: float(value) for name, value in file.metadata().items()}
    return SimpleNamespace(**tensors, **made)


@pytest.fixture
def both(tmp_path, verl_run, verl_study, cpu_options, cpu_environment):
    """Train with both; return the runs, their folders and what verl's engine has seen."""
    torch.set_num_threads(1)
    data, initial = tmp_path / "data.parquet", tmp_path / "initial"
    prompts = chain.distinct_prompts(1, 3, 40, seed=5, held_out=False)
    columns = {"id": prompts, "prompt": prompts, "answer": [chain.answer(each) for each in prompts]}
    write_parquet(data, pa.table(columns), {})
    save_policy(initial_policy(data), initial / "weights")
    write_json(initial / "initial.json", {"weights_sha256": policy_hash(initial / "weights")})
    changes = {
        "max_prompt_tokens": MAX_PROMPT,
        "max_response_tokens": MAX_RESPONSE,
        "master_weights": "fp32",
        "resources.gpus_per_node": 1,
        "resources.parallelism": {},
        # Several micro-batches an update.
        "resources.tokens_per_gpu": 1024,
        "resources.verl_overrides": [*cpu_options, *IN_FLOAT32],
    }
    evaluation = {"updates": [UPDATES], "temperature": 1.0, "top_p": 1.0, "seed": 1}
    run, _ = verl_run(
        MODEL, staleness=STALENESS, evaluation=evaluation, model_changes=changes, **TRAINING
    )
    run = run.model_copy(update={"objective_code": objectives.code_hash(run.objective.objective)})
    small = {
        "backend": "local",
        "architecture": ARCHITECTURE,
        "warm_start": WARM_START,
        "max_prompt_tokens": MAX_PROMPT,
        "max_response_tokens": MAX_RESPONSE,
    }
    configs = {"verl": run, "local": RunConfig.model_validate(run.model_dump() | {"model": small})}
    model = verl_study.config / "models" / f"{MODEL}.yaml"
    given = {
        "verl": ["--initial", initial / "initial.json", "--model", model],
        "local": ["--initial", initial / "weights"],
    }
    modules = {"VERL_USE_EXTERNAL_MODULES": "cpu_platform,cpu_vllm,record_updates"}
    environment = cpu_environment | modules
    records = tmp_path / "verl" / "records"
    for name, config in configs.items():
        folder = tmp_path / name
        folder.mkdir()
        (folder / "config.yaml").write_text(yaml.safe_dump(config.model_dump(mode="json")))
        options = ["--config", folder / "config.yaml", "--data", data, *given[name]]
        with (tmp_path / f"{name}.log").open("w") as log:
            ended = subprocess.run(
                [sys.executable, "-m", f"respo.training.{name}", *options],
                cwd=tmp_path,  # Hydra leaves files of its own here
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        assert ended.returncode == 0, (tmp_path / f"{name}.log").read_text()[-6000:]
    return SimpleNamespace(
        config=configs["local"],
        runs={name: tmp_path / name for name in configs},
        initial=load_policy(initial / "weights"),
        prompts=load_prompts(data, tokenizer(), MAX_PROMPT),
        seen=[recorded(records / f"{number}.safetensors") for number in range(1, UPDATES + 1)],
    )


def close(found, expected, atol):
    torch.testing.assert_close(found, expected, rtol=0.0, atol=atol, check_dtype=False)


def as_samples(seen):
    """What verl's engine has seen, as if the local sampler had drawn it."""
    length_B = seen.response_mask.sum(1)
    last_B = seen.responses.gather(1, length_B.unsqueeze(1) - 1).squeeze(1)
    missing = MAX_RESPONSE - seen.responses.shape[1]
    wide = lambda rows_BT: torch.nn.functional.pad(rows_BT, (0, missing))  # noqa: E731
    return Samples(
        tokens_BT=wide(seen.responses),
        log_prob_BT=wide(seen.old_log_probs * seen.response_mask),
        length_B=length_B,
        truncated_B=last_B != tokenizer().eos_id,
        routes_LBSK=None,
    )


def local_updates(both, monkeypatch):
    """Let the local trainer learn from what verl's engine has seen, update after update.

    Yields what verl has seen, the local responses and loss, metrics and sums by branch, and the
    policy after the update.
    """
    config, initial = both.config, both.initial
    settings = config.training.optimizer
    optimizer = AdamW(
        initial,
        betas=tuple(settings.betas),
        weight_decay=settings.weight_decay,
        clip=settings.gradient_clip,
    )
    losses = []

    def policy_loss(*arguments):
        losses.append(original(*arguments))
        return losses[-1]

    original = update_module.policy_loss
    monkeypatch.setattr(update_module, "policy_loss", policy_loss)
    for index, seen in enumerate(both.seen):
        batch = both.prompts.take(index * PROMPTS, PROMPTS, config.seed)
        verifier = config.training.reward
        responses = assemble(initial, batch, as_samples(seen), GROUP, verifier=verifier)
        updated = policy_update(
            optimizer,
            responses,
            config,
            index + 1,
            on_policy=index % STALENESS == 0,
            reference=initial,
        )
        yield seen, responses, losses[-1].item(), updated, optimizer.policy


def tables(run):
    """Rows of metrics, and the sums by branch of each update: (updates, kind, sign, bin)."""
    metrics = read_parquet(run / "metrics.parquet")
    branches = read_parquet(run / "branches.parquet")
    sums = torch.tensor([branches[kind].to_pylist() for kind in BRANCH_SUMS], dtype=torch.float64)
    return metrics.to_pylist(), sums.view(len(BRANCH_SUMS), UPDATES, 2, -1).transpose(0, 1)


def check_updates(both, monkeypatch):
    rows, branches_UKSN = tables(both.runs["verl"])
    for index, made in enumerate(local_updates(both, monkeypatch)):
        seen, responses, loss, updated, policy = made
        # The same prompts in the same order, and each group together.
        lengths = seen.__dict__["prompts.lengths"].tolist()
        for at, length in enumerate(lengths):
            assert seen.prompts[at, :length].equal(responses.ids_BT[at, :length]), (index, at)
        assert lengths == (responses.length_B - responses.response_length_B).tolist()
        # The same reward on the same texts, and the same advantage.
        assert seen.rm_scores.sum(1).tolist() == responses.reward_B.tolist()
        close(seen.advantages[:, 0], responses.advantage_B, atol=1e-6)
        # The same policy sampled: vLLM's log-probabilities, those of verl's trainer and our own.
        mask_BT = seen.response_mask.bool()
        close(seen.old_log_probs[mask_BT], seen.rollout_log_probs[mask_BT], atol=2e-5)
        if index < STALENESS:
            with torch.no_grad():
                log_prob_BT, _ = token_log_probs(both.initial, responses.ids_BT, 1.0)
            close(seen.old_log_probs[mask_BT], log_prob_BT[responses.mask_BT], atol=2e-5)
        # The same update, and the same numbers about it.
        tolerance = LATER if index else FIRST
        assert seen.loss == pytest.approx(loss, abs=tolerance)
        for name, value in updated.metrics.items():
            allowed = 0.0 if name in EXACT else tolerance
            expected = pytest.approx(value, rel=allowed, abs=allowed, nan_ok=True)
            assert rows[index][name] == expected, (index, name)
        # Responses may lie in other bins where log W is 0 up to rounding.
        close(branches_UKSN[index].sum(-1), updated.branches.sum(-1), atol=1e-3)
        if index % STALENESS:
            close(branches_UKSN[index], updated.branches, atol=1e-3)
    # The same policy in the end, but for the precision of the checkpoint, bfloat16. The first steps
    # of Adam have the size of the learning rate, also where a gradient is 0 up to rounding.
    checkpoint = load_policy(both.runs["verl"] / "checkpoints" / str(UPDATES))
    for name, weight in policy.weights.items():
        moved = (weight - both.initial.weights[name]).abs().mean()
        assert (checkpoint.weights[name] - weight.bfloat16()).abs().mean() < 0.01 * moved, name


def check_results(both):
    trained = {name: read_json(run / "train.json") for name, run in both.runs.items()}
    assert trained["verl"].keys() == trained["local"].keys()
    for key in ("update", "data_sha256", "initial_sha256", "prompts", "prompts_dropped"):
        assert trained["verl"][key] == trained["local"][key], key
    first = {name: tables(run)[0][:STALENESS] for name, run in both.runs.items()}
    assert first["verl"][0].keys() == first["local"][0].keys()
    # The first rollout batches are of the same policy and prompts, but drawn anew: five standard
    # errors of a difference, in which that of the prompts counts although they are the same.
    seen = both.seen[:STALENESS]
    for name, values in (
        ("score", torch.cat([each.rm_scores.sum(1) for each in seen])),
        ("response_length", torch.cat([each.response_mask.sum(1).float() for each in seen])),
    ):
        error = float(values.std()) * (2 / len(values)) ** 0.5
        means = {run: sum(row[name] for row in rows) / STALENESS for run, rows in first.items()}
        assert means["verl"] == pytest.approx(means["local"], abs=5 * error), name


def test_one_meaning(both, monkeypatch):
    check_updates(both, monkeypatch)
    check_results(both)
