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
        return int(self.config.get("num_local_experts") or self.config.get("num_experts") or 0)

    def parameters(self) -> list[Tensor]:
        """Return the weights in the order of their names."""
        return [self.weights[name] for name in sorted(self.weights)]
