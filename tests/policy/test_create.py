import pytest
import torch

from respo.config.schema import Architecture
from respo.policy import create_policy, forward, load_policy, save_policy

SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "intermediate_size": 24,
}
DENSE = Architecture(model_type="qwen3", **SIZES)
MOE = Architecture(model_type="qwen3_moe", num_experts=4, num_experts_per_tok=2, **SIZES)


@pytest.mark.parametrize("architecture", [DENSE, MOE], ids=["dense", "moe"])
def test_weights_are_those_of_transformers_and_reproducible(architecture, tmp_path):
    before = torch.get_rng_state()
    policy = create_policy(architecture, max_positions=40, seed=3)
    assert torch.equal(torch.get_rng_state(), before)
    again = create_policy(architecture, max_positions=40, seed=3)
    other = create_policy(architecture, max_positions=40, seed=4)
    assert all(torch.equal(policy.weights[name], w) for name, w in again.weights.items())
    assert not torch.equal(
        policy.weights["model.embed_tokens.weight"], other.weights["model.embed_tokens.weight"]
    )

    from transformers import AutoConfig, AutoModelForCausalLM

    save_policy(policy, tmp_path / "policy")
    config = AutoConfig.from_pretrained(tmp_path / "policy")
    torch.manual_seed(3)
    model = AutoModelForCausalLM.from_config(config)
    ids_BT = torch.arange(20)[None]
    torch.testing.assert_close(forward(policy, ids_BT), model(ids_BT).logits, rtol=0, atol=1e-5)


def test_configuration(tmp_path):
    config = create_policy(MOE, max_positions=40, seed=0).config
    expected = {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        "vocab_size": 20,
        "max_position_embeddings": 40,
        "tie_word_embeddings": True,
        "initializer_range": 0.05,
        "norm_topk_prob": True,
        "moe_intermediate_size": 24,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "pad_token_id": 0,
        "eos_token_id": 1,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
    }
    assert {key: config[key] for key in expected} == expected


def test_a_saved_policy_is_the_created_one(tmp_path):
    policy = create_policy(DENSE, max_positions=40, seed=0)
    save_policy(policy, tmp_path / "policy")
    loaded = load_policy(tmp_path / "policy")
    assert loaded.config == policy.config
    assert loaded.tokenizer.config == policy.tokenizer.config
    assert loaded.weights.keys() == policy.weights.keys()
    assert all(torch.equal(loaded.weights[name], w) for name, w in policy.weights.items())
