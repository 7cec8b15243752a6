"""New weights, drawn by transformers' own initialisation."""

import json
from typing import TYPE_CHECKING

import torch

from respo.policy.checkpoint import fuse_experts
from respo.policy.tokenizer import VOCABULARY, character_tokenizer
from respo.policy.weights import Policy

if TYPE_CHECKING:  # what samples a policy need not know its configuration schema
    from respo.config.schema import Architecture


def create_policy(architecture: "Architecture", max_positions: int, seed: int) -> Policy:
    """Draw weights for an architecture with the 20-token vocabulary; the same for the same seed.

    The caller's random numbers are left alone. ``max_positions`` is the longest sequence in tokens.
    """
    # Takes seconds to import; nothing else in the package needs it.
    from transformers import AutoConfig, AutoModelForCausalLM

    tokenizer = character_tokenizer()
    sizes = architecture.model_dump(exclude_none=True)
    if architecture.model_type == "qwen3_moe":
        sizes |= {"moe_intermediate_size": architecture.intermediate_size, "norm_topk_prob": True}
    config = AutoConfig.for_model(
        **sizes,
        vocab_size=len(VOCABULARY),
        max_position_embeddings=max_positions,
        rope_theta=10000.0,
        tie_word_embeddings=True,
        # 0.02 is meant for wide layers; a hidden size of 64 learns faster from larger weights.
        initializer_range=0.05,
        pad_token_id=tokenizer.pad_id,
        eos_token_id=tokenizer.eos_id,
        bos_token_id=None,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    # state_dict names the tied head too; a file holds it once.
    weights = {
        name: w.clone() for name, w in model.state_dict().items() if name != "lm_head.weight"
    }
    model.config.architectures = [type(model).__name__]
    model.config.dtype = torch.float32
    return Policy(json.loads(model.config.to_json_string()), fuse_experts(weights), tokenizer)
