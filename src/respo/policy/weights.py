"""What a policy is: a configuration, its weights and a tokenizer."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from respo.policy.tokenizer import Tokenizer


@dataclass(frozen=True)
class Policy:
    """A Qwen3 or Qwen3-MoE language model.

    Attributes:
        config: the Hugging Face ``config.json``.
        weights: float32 tensors under the names of transformers' modules. The experts of a layer
            are fused, ``mlp.experts.gate_up_proj`` [E, 2F, H] and ``down_proj`` [E, H, F], as in
            transformers' modules; files hold them one by one.
        tokenizer: text to token ids and back.
    """

    config: dict[str, Any]
    weights: dict[str, Tensor]
    tokenizer: Tokenizer

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.weights["model.embed_tokens.weight"].device

    @property
    def num_experts(self) -> int:
        """Experts per layer; 0 for a dense policy."""
        return num_experts(self.config)

    def parameters(self) -> list[Tensor]:
        """Return the weights in the order of their names."""
        return [self.weights[name] for name in sorted(self.weights)]


def num_experts(config: dict[str, Any]) -> int:
    """Experts per layer of a configuration; 0 for a dense one."""
    if config["model_type"] == "qwen3":
        return 0
    # transformers 5 writes the first name, earlier versions the second.
    return config.get("num_local_experts") or config["num_experts"]


def expected_shapes(config: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Name and shape of every tensor of a policy.

    Raises:
        KeyError: the configuration lacks a size.
    """
    hidden, dim = config["hidden_size"], config["head_dim"]
    query, key = config["num_attention_heads"] * dim, config["num_key_value_heads"] * dim
    layer: dict[str, tuple[int, ...]] = {
        "input_layernorm.weight": (hidden,),
        "post_attention_layernorm.weight": (hidden,),
        "self_attn.q_proj.weight": (query, hidden),
        "self_attn.k_proj.weight": (key, hidden),
        "self_attn.v_proj.weight": (key, hidden),
        "self_attn.o_proj.weight": (hidden, query),
        "self_attn.q_norm.weight": (dim,),
        "self_attn.k_norm.weight": (dim,),
    }
    if experts := num_experts(config):
        inner = config["moe_intermediate_size"]
        layer["mlp.gate.weight"] = (experts, hidden)
        layer["mlp.experts.gate_up_proj"] = (experts, 2 * inner, hidden)
        layer["mlp.experts.down_proj"] = (experts, hidden, inner)
    else:
        inner = config["intermediate_size"]
        layer["mlp.gate_proj.weight"] = layer["mlp.up_proj.weight"] = (inner, hidden)
        layer["mlp.down_proj.weight"] = (hidden, inner)
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (config["vocab_size"], hidden),
        "model.norm.weight": (hidden,),
    }
    for i in range(config["num_hidden_layers"]):
        shapes |= {f"model.layers.{i}.{name}": shape for name, shape in layer.items()}
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (config["vocab_size"], hidden)
    return shapes
