from collections.abc import Callable

import pytest
import torch

from respo.policy import Policy, character_tokenizer
from respo.policy.weights import expected_shapes


def random_policy(experts: int = 0, *, tied: bool = True, scale: float = 0.3) -> Policy:
    """A small policy whose every weight matters, norms included; made without transformers."""
    config = {
        "architectures": ["Qwen3MoeForCausalLM" if experts else "Qwen3ForCausalLM"],
        "model_type": "qwen3_moe" if experts else "qwen3",
        "vocab_size": 20,
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "intermediate_size": 32,
        "max_position_embeddings": 64,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
        "tie_word_embeddings": tied,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "bos_token_id": None,
        "dtype": "float32",
    }
    if experts:
        config |= {"num_local_experts": experts, "num_experts_per_tok": 2}
        config |= {"moe_intermediate_size": 16, "norm_topk_prob": True, "mlp_only_layers": []}
    generator = torch.Generator().manual_seed(experts)
    weights = {
        name: torch.randn(shape, generator=generator) * scale + (1.0 if "norm" in name else 0.0)
        for name, shape in expected_shapes(config).items()
    }
    return Policy(config, weights, character_tokenizer())


@pytest.fixture
def make_policy() -> Callable[..., Policy]:
    return random_policy


@pytest.fixture(params=[0, 4], ids=["dense", "moe"])
def policy(request: pytest.FixtureRequest) -> Policy:
    return random_policy(request.param)
