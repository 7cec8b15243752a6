"""Qwen3 and Qwen3-MoE on plain tensors, the one definition for training and sampling.

Two simplifications against transformers' modules, both of them exact: query, key and value are one
matrix product, and every expert is computed for every token, weighted by zero where it was not
chosen (there are few experts, and they are small).
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from respo.policy.weights import Policy

# (layer, query [B, T, Hq, D], key [B, T, Hk, D], value [B, T, Hk, D]) -> [B, T, Hq * D]
Attention = Callable[[int, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Layer:
    """The weights of a layer: one matrix for query, key and value, one for all experts."""

    input_norm: Tensor
    query_key_value: Tensor  # [(Hq + 2 Hk) D, H]
    query_key_norm: Tensor  # [Hq + Hk, D]
    output: Tensor  # [H, Hq D]
    feed_forward_norm: Tensor
    gate: Tensor  # [E F, H]
    up: Tensor  # [E F, H]
    down: Tensor  # [H, E F]
    router: Tensor | None  # [E, H]


@dataclass(frozen=True)
class Network:
    """All weights and the numbers of the configuration that the computation needs."""

    embedding: Tensor
    layers: list[Layer]
    norm: Tensor
    head: Tensor
    query_heads: int
    key_heads: int
    head_dim: int
    experts: int
    experts_per_token: int
    renormalise: bool
    epsilon: float
    rope_theta: float

    def rope(self, length: int) -> tuple[Tensor, Tensor]:
        """Cosine and signed sine [length, D] of the rotary position embedding."""
        return _rope(length, self.head_dim, self.rope_theta, self.embedding.device)

    def hidden(
        self,
        ids_BT: Tensor,
        cos: Tensor,
        sin: Tensor,
        attention: Attention,
        routes_LBTK: Tensor | None = None,
        record: list[Tensor] | None = None,
    ) -> Tensor:
        """Final hidden states [B, T, H]; ``cos`` and ``sin`` are [B or 1, T, 1, D].

        The chosen experts of each layer, [B, T, K], are appended to ``record``.
        """
        x = F.embedding(ids_BT, self.embedding)
        for i, layer in enumerate(self.layers):
            x = x + F.linear(attention(i, *self._project(layer, x, cos, sin)), layer.output)
            routes = None if routes_LBTK is None else routes_LBTK[i]
            x = x + self._feed_forward(layer, self._rms(x, layer.feed_forward_norm), routes, record)
        return self._rms(x, self.norm)

    def logits(self, hidden: Tensor) -> Tensor:
        """Logits over the vocabulary."""
        return F.linear(hidden, self.head)

    def _rms(self, x: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], weight, self.epsilon)

    def _project(self, layer: Layer, x: Tensor, cos: Tensor, sin: Tensor) -> list[Tensor]:
        x = F.linear(self._rms(x, layer.input_norm), layer.query_key_value)
        x = x.unflatten(-1, (-1, self.head_dim))
        rotated, value = x.split((self.query_heads + self.key_heads, self.key_heads), dim=-2)
        rotated = F.rms_norm(rotated, (self.head_dim,), None, self.epsilon) * layer.query_key_norm
        rotated = rotated * cos + rotated.roll(self.head_dim // 2, -1) * sin
        return [*rotated.split((self.query_heads, self.key_heads), dim=-2), value]

    def _feed_forward(
        self, layer: Layer, x: Tensor, routes: Tensor | None, record: list[Tensor] | None
    ) -> Tensor:
        inner = F.silu(F.linear(x, layer.gate)) * F.linear(x, layer.up)
        if layer.router is not None:
            probability = F.linear(x, layer.router).softmax(-1)
            if routes is None:
                routes = probability.topk(self.experts_per_token, -1).indices
            if record is not None:
                record.append(routes)
            weight = probability.gather(-1, routes)
            if self.renormalise:
                weight = weight / weight.sum(-1, keepdim=True)
            mixture = torch.zeros_like(probability).scatter(-1, routes, weight)
            inner = (inner.unflatten(-1, (self.experts, -1)) * mixture[..., None]).flatten(-2)
        return F.linear(inner, layer.down)


def network(policy: Policy) -> Network:
    """Arrange a policy's weights for computation, differentiably. Cheap enough for every pass."""
    config, weights = policy.config, policy.weights
    embedding = weights["model.embed_tokens.weight"]
    return Network(
        embedding=embedding,
        layers=[_layer(policy, i) for i in range(config["num_hidden_layers"])],
        norm=weights["model.norm.weight"],
        head=weights.get("lm_head.weight", embedding),
        query_heads=config["num_attention_heads"],
        key_heads=config["num_key_value_heads"],
        head_dim=config["head_dim"],
        experts=policy.num_experts or 1,
        experts_per_token=config.get("num_experts_per_tok", 0),
        renormalise=config.get("norm_topk_prob", False),
        epsilon=config["rms_norm_eps"],
        rope_theta=(config.get("rope_parameters") or config)["rope_theta"],
    )


def _layer(policy: Policy, index: int) -> Layer:
    config = policy.config

    def weight(name: str) -> Tensor:
        return policy.weights[f"model.layers.{index}.{name}"]

    projections = [weight(f"self_attn.{name}_proj.weight") for name in "qkv"]
    norms = [
        weight("self_attn.q_norm.weight").expand(config["num_attention_heads"], -1),
        weight("self_attn.k_norm.weight").expand(config["num_key_value_heads"], -1),
    ]
    if policy.num_experts:
        router = weight("mlp.gate.weight")
        gate, up = (w.flatten(0, 1) for w in weight("mlp.experts.gate_up_proj").chunk(2, 1))
        down = weight("mlp.experts.down_proj").transpose(0, 1).flatten(1)
    else:
        router = None
        gate, up = weight("mlp.gate_proj.weight"), weight("mlp.up_proj.weight")
        down = weight("mlp.down_proj.weight")
    return Layer(
        input_norm=weight("input_layernorm.weight"),
        query_key_value=torch.cat(projections),
        query_key_norm=torch.cat(norms),
        output=weight("self_attn.o_proj.weight"),
        feed_forward_norm=weight("post_attention_layernorm.weight"),
        gate=gate,
        up=up,
        down=down,
        router=router,
    )


@functools.lru_cache(maxsize=16)
def _rope(length: int, dim: int, theta: float, device: torch.device) -> tuple[Tensor, Tensor]:
    # Both in float32 and in transformers' order of operations, so that both round alike.
    frequency = 1.0 / theta ** (torch.arange(0, dim, 2).float() / dim)
    angle = torch.outer(torch.arange(length).float(), frequency)
    cos = torch.cat([angle.cos(), angle.cos()], -1)
    # rotate_half(x) * sin, with the minus sign moved into the table: a plain roll remains.
    sin = torch.cat([-angle.sin(), angle.sin()], -1)
    return cos.to(device), sin.to(device)
