"""The forward pass over whole sequences, for training."""

import torch
import torch.nn.functional as F
from torch import Tensor

from respo.policy.network import network
from respo.policy.weights import Policy


def forward(policy: Policy, ids_BT: Tensor, *, routes_LBTK: Tensor | None = None) -> Tensor:
    """Logits [B, T, V] of right-padded sequences, differentiable in ``policy.weights``.

    Attention is causal, so padding on the right changes nothing before it. ``routes_LBTK`` replaces
    the router's choice of experts; the router's probabilities of them stay differentiable (routing
    replay).
    """
    return _logits(policy, ids_BT, routes_LBTK, None)


def forward_with_routes(policy: Policy, ids_BT: Tensor) -> tuple[Tensor, Tensor]:
    """Logits [B, T, V] and the chosen experts [L, B, T, K] of a mixture of experts."""
    record: list[Tensor] = []
    logits_BTV = _logits(policy, ids_BT, None, record)
    return logits_BTV, torch.stack(record)


def token_log_probs(
    policy: Policy,
    ids_BT: Tensor,
    temperature: float,
    *,
    routes_LBTK: Tensor | None = None,
    record: list[Tensor] | None = None,
    entropy_gradient: bool = False,
) -> tuple[Tensor, Tensor]:
    """Log-probability of each next token and entropy there, both [B, T-1] in nats.

    Column t is about token t+1 given tokens 0..t. Logits are divided by ``temperature``. The
    entropy is differentiable on demand only: its gradient costs memory and time. ``routes_LBTK`` as
    in `forward`; the chosen experts of each layer, [B, T, K], are appended to ``record``.
    """
    logits_BTV = _logits(policy, ids_BT, routes_LBTK, record)[:, :-1]
    log_prob_BTV = (logits_BTV / temperature).log_softmax(-1)
    log_prob_BT = log_prob_BTV.gather(-1, ids_BT[:, 1:, None]).squeeze(-1)
    if not entropy_gradient:
        log_prob_BTV = log_prob_BTV.detach()
    return log_prob_BT, -(log_prob_BTV.exp() * log_prob_BTV).sum(-1)


def _logits(
    policy: Policy, ids_BT: Tensor, routes_LBTK: Tensor | None, record: list[Tensor] | None
) -> Tensor:
    net = network(policy)
    cos, sin = net.rope(ids_BT.shape[1])
    hidden = net.hidden(ids_BT, cos[:, None], sin[:, None], _causal, routes_LBTK, record)
    return net.logits(hidden)


def _causal(layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    query, key, value = (x.transpose(1, 2) for x in (query, key, value))
    attended = F.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)
    return attended.transpose(1, 2).flatten(2)
