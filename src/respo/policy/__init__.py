"""The policy: a small Qwen3 on plain tensors, fast on one thread.

Everything works on the weights of a Hugging Face checkpoint directly, in exact agreement with
transformers, which takes seconds to import and is needed only to draw new weights.
"""

from respo.policy.checkpoint import load_policy, policy_hash, save_policy
from respo.policy.create import create_policy
from respo.policy.sampler import Samples, sample
from respo.policy.sequences import forward, forward_with_routes, token_log_probs
from respo.policy.tokenizer import Tokenizer, character_tokenizer
from respo.policy.weights import Policy

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
    "token_log_probs",
]
