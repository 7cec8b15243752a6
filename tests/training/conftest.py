from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch

from respo import objectives
from respo.config.schema import RunConfig, Training, WarmStart
from respo.data import chain
from respo.parquet import write_parquet
from respo.policy import Policy, character_tokenizer, load_policy, save_policy
from respo.policy.weights import expected_shapes
from respo.training.local.prompts import Prompts, load_prompts
from respo.training.local.warm_start import warm_start

MAX_PROMPT, MAX_RESPONSE = 8, 24


def random_policy(experts: int = 0, seed: int = 0) -> Policy:
    """A very small policy, made without transformers."""
    config = {
        "architectures": ["Qwen3MoeForCausalLM" if experts else "Qwen3ForCausalLM"],
        "model_type": "qwen3_moe" if experts else "qwen3",
        "vocab_size": 20,
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 8,
        "intermediate_size": 16,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
        "tie_word_embeddings": True,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "bos_token_id": None,
        "dtype": "float32",
    }
    if experts:
        config |= {"num_local_experts": experts, "num_experts_per_tok": 2}
        config |= {"moe_intermediate_size": 8, "norm_topk_prob": True, "mlp_only_layers": []}
    generator = torch.Generator().manual_seed(seed)
    weights = {
        name: torch.randn(shape, generator=generator) * 0.2 + (1.0 if "norm" in name else 0.0)
        for name, shape in expected_shapes(config).items()
    }
    return Policy(config, weights, character_tokenizer())


def run_config(**changes: Any) -> RunConfig:
    """8 updates, N = 4, M = 4, G = 4; ``changes`` go to where their key belongs.

    Routing replay, which needs one, says that the policy is a mixture of experts.
    """
    optimizer = {
        "learning_rate": 5e-3,
        "warmup_updates": 0,
        "betas": [0.9, 0.999],
        "weight_decay": 0.0,
        "gradient_clip": 1.0,
    }
    training = {
        "updates": 8,
        "mini_batch": 4,
        "rollouts_per_prompt": 4,
        "temperature": 1.0,
        "loss_aggregation": "token-mean",
        "checkpoints": [3, 8],
    }
    name = changes.pop("objective", "respo")
    top = {"staleness": 4, "seed": 1}
    for part, known in (
        (optimizer, optimizer),
        (training, Training.model_fields),
        (top, top),
    ):
        part.update({key: changes.pop(key) for key in list(changes) if key in known})
    data = {"source": "chain", "operators": [1, 3], "rows": 40, "seed": 5}
    policy = {
        "backend": "local",
        "architecture": {
            "model_type": "qwen3",
            "hidden_size": 16,
            "num_hidden_layers": 1,
            "num_attention_heads": 2,
            "num_key_value_heads": 1,
            "head_dim": 8,
            "intermediate_size": 16,
        },
        "warm_start": {
            "data": "train",
            "steps": 120,
            "batch": 32,
            "learning_rate": 2e-2,
            "direct": 0.5,
            "corrupted": 0.1,
            "seed": 0,
        },
        "max_prompt_tokens": MAX_PROMPT,
        "max_response_tokens": MAX_RESPONSE,
    }
    if training.get("routing_replay", "none") != "none":
        experts = {"model_type": "qwen3_moe", "num_experts": 4, "num_experts_per_tok": 2}
        policy["architecture"] |= experts  # type: ignore[operator]
    return RunConfig.model_validate(
        {
            "model": policy,
            "objective": {"objective": name, "parameters": changes},
            "objective_code": objectives.code_hash(name),
            "training": training | {"optimizer": optimizer},
            "train_data": data,
            **top,
        }
    )


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture
def make_policy() -> Callable[..., Policy]:
    return random_policy


@pytest.fixture
def make_config() -> Callable[..., RunConfig]:
    return run_config


@pytest.fixture(scope="session")
def data_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """40 prompts of 1 to 3 operators."""
    prompts = chain.distinct_prompts(1, 3, 40, seed=5, held_out=False)
    path = tmp_path_factory.mktemp("data") / "train.parquet"
    table = pa.table(
        {
            "id": [f"row-{index}" for index in range(len(prompts))],
            "prompt": prompts,
            "answer": [chain.answer(prompt) for prompt in prompts],
        }
    )
    write_parquet(path, table, {})
    return path


@pytest.fixture(scope="session")
def prompts(data_file: Path) -> Prompts:
    return load_prompts(data_file, character_tokenizer(), MAX_PROMPT)


@pytest.fixture(scope="session", params=[0, 4], ids=["dense", "moe"])
def initial(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, prompts: Prompts
) -> Path:
    """Weights that box a digit most of the time, often the wrong one: rewards differ in a group."""
    torch.set_num_threads(1)
    settings = WarmStart.model_validate(run_config().model.warm_start.model_dump())
    policy, _ = warm_start(random_policy(request.param), prompts, settings, "test")
    folder = tmp_path_factory.mktemp("initial") / "weights"
    save_policy(policy, folder)
    return folder


@pytest.fixture
def policy(initial: Path) -> Policy:
    return load_policy(initial)
