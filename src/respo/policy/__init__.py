"""The policy: a small Qwen3 on plain tensors, fast on one thread.

transformers' Qwen3 classes define the network and draw the initial weights. The forward pass is our
own, on the weights of a Hugging Face checkpoint, for speed: transformers takes seconds to import,
and its generation is several times slower on small models (``benchmarks/sampler.py``). Tests hold
logits and gradients equal to those of transformers' classes.
"""

from respo.policy.checkpoint import load_policy, save_policy, text_files
from respo.policy.create import create_policy
from respo.policy.sampler import Samples, sample
from respo.policy.sequences import forward, forward_with_routes, token_log_probs
from respo.policy.tokenizer import Tokenizer, character_tokenizer
from respo.policy.weights import Policy
from respo.weight_files import policy_hash

__all__ = [
    "Policy",
    "Samples",
    "Tokenizer",
    "character_tokenizer",
    "create_policy",
    "forward",
    "forward_with_routes",
    "load_policy",
    "policy_hash",
    "sample",
    "save_policy",
    "text_files",
    "token_log_probs",
]
