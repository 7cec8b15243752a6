"""The forward pass of Qwen3 and Qwen3-MoE on plain tensors."""

from torch import Tensor

from respo.policy.weights import Policy


def forward(policy: Policy, ids_BT: Tensor, *, routes_LBTK: Tensor | None = None) -> Tensor:
    """Logits [B, T, V] of right-padded sequences, differentiable in ``policy.weights``.

    ``routes_LBTK`` replaces the router's choice of experts (routing replay).
    """
    raise NotImplementedError


def forward_with_routes(policy: Policy, ids_BT: Tensor) -> tuple[Tensor, Tensor]:
    """Logits [B, T, V] and the chosen experts [L, B, T, K] of a mixture of experts."""
    raise NotImplementedError


def token_log_probs(
    policy: Policy, ids_BT: Tensor, temperature: float, *, routes_LBTK: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Log-probability of each next token and entropy (detached) there, both [B, T-1] in nats.

    Column t is about token t+1 given tokens 0..t. Logits are divided by ``temperature``.
    """
    raise NotImplementedError
