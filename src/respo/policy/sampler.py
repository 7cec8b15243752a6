"""Sampling responses: shared prefill, cached keys and values, finished rows dropped.

Rows are in three orders: B, the caller's; n, those still computed, which shrinks as responses end;
P, one per prompt.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from respo.policy.network import Attention, Network, network
from respo.policy.weights import Policy

# Finished rows are dropped when more than this share of the computed rows is finished.
FINISHED_SHARE = 0.1
# Slots by which the cache grows. All of it is read at each token, unused slots too: on CPU, reading
# memory without gaps is three times as fast as leaving out the end of every row.
GROWTH = 16
# Finished rows are counted every so many tokens: on a GPU, counting waits for it.
COUNT_EVERY = {"cpu": 1, "cuda": 16}


@dataclass(frozen=True)
class Samples:
    """Responses; T is ``max_new_tokens``, B the number of prompts times the group size.

    Attributes:
        tokens_BT: int64, the end-of-sequence token included, padding after it.
        log_prob_BT: float32 nats, under the temperature but before top-p; 0 at padding.
        length_B: int64, tokens, the end-of-sequence token included.
        truncated_B: bool, no end-of-sequence token within the limit.
        routes_LBSK: chosen experts by position in the right-padded sequence of prompt and response
            (S = longest prompt + T), fit for `forward`; None unless recorded. Where nothing was
            computed (from the last token on) they are experts 0..K-1.
    """

    tokens_BT: Tensor
    log_prob_BT: Tensor
    length_B: Tensor
    truncated_B: Tensor
    routes_LBSK: Tensor | None


@torch.no_grad()
def sample(
    policy: Policy,
    prompts: list[list[int]],
    group_size: int,
    max_new_tokens: int,
    uniform_BT: Tensor,
    *,
    temperature: float = 1.0,
    top_p: float = 1.0,
    record_routes: bool = False,
) -> Samples:
    """Sample ``group_size`` adjacent responses per prompt.

    All randomness is in ``uniform_BT`` in [0, 1): token t of row b is the inverse of the cumulative
    distribution at ``uniform_BT[b, t]``, so a row depends on its own numbers only. (The rounding of
    matrix products may depend on the batch, 1e-7 in a probability.)

    Raises:
        ValueError: a prompt is empty, or ``uniform_BT`` is not [B, T].
    """
    rows, eos = len(prompts) * group_size, policy.tokenizer.eos_id
    if not prompts or not all(prompts) or uniform_BT.shape != (rows, max_new_tokens):
        raise ValueError(
            f"{len(prompts)} prompts of at least one token and group size {group_size} "
            f"need uniforms of shape {(rows, max_new_tokens)}, not {tuple(uniform_BT.shape)}"
        )
    decoder = _Decoder(policy, prompts, group_size, max_new_tokens, record_routes)
    uniform_BT = uniform_BT.to(policy.device, torch.float64)
    tokens_BT = torch.full_like(uniform_BT, policy.tokenizer.pad_id, dtype=torch.int64)
    log_prob_BT = torch.zeros_like(uniform_BT, dtype=torch.float32)
    logits_nV = decoder.prefill()
    alive_n = torch.ones(rows, dtype=torch.bool, device=policy.device)
    interval = COUNT_EVERY[policy.device.type]
    for t in range(max_new_tokens):
        log_prob_nV = (logits_nV / temperature).log_softmax(-1)
        prob_nV = nucleus(log_prob_nV.exp(), top_p)
        token_n = inverse_cumulative(prob_nV, uniform_BT[decoder.row_n, t])
        log_prob_n = log_prob_nV.gather(-1, token_n[:, None])[:, 0]
        tokens_BT[decoder.row_n, t] = torch.where(alive_n, token_n, policy.tokenizer.pad_id)
        log_prob_BT[decoder.row_n, t] = torch.where(alive_n, log_prob_n, 0.0)
        alive_n = alive_n & (token_n != eos)
        if t + 1 == max_new_tokens:
            break
        if (t + 1) % interval == 0:
            alive = int(alive_n.sum())
            if alive == 0:
                break
            if alive < (1 - FINISHED_SHARE) * len(alive_n):
                token_n = token_n[decoder.drop(alive_n, alive)]
                alive_n = torch.ones_like(token_n, dtype=torch.bool)
        logits_nV = decoder.step(token_n)
    ended_B = (tokens_BT == eos).any(1)
    length_B = torch.where(ended_B, (tokens_BT == eos).int().argmax(1) + 1, max_new_tokens)
    return Samples(tokens_BT, log_prob_BT, length_B, ~ended_B, decoder.routes(length_B))


def inverse_cumulative(prob_BV: Tensor, uniform_B: Tensor) -> Tensor:
    """Token whose share of [0, sum of ``prob_BV``) covers ``uniform_B`` times that sum.

    Never a token of probability zero, however close to 1 the number is.
    """
    cumulative_BV = prob_BV.double().cumsum(-1)
    total_B = cumulative_BV[:, -1]
    # Rounding may lift the product to the total, which lies beyond the last token.
    target_B = torch.minimum(
        uniform_B.double() * total_B, torch.nextafter(total_B, torch.zeros_like(total_B))
    )
    return torch.searchsorted(cumulative_BV, target_B[:, None], right=True)[:, 0]


def nucleus(prob_BV: Tensor, top_p: float) -> Tensor:
    """Zero all but the fewest most probable tokens whose probabilities sum to ``top_p`` or more.

    The most probable token is always kept; of equal ones the lower id counts as more probable.
    The result is not renormalised.
    """
    if top_p >= 1.0:
        return prob_BV
    sorted_BV, order_BV = prob_BV.sort(dim=-1, descending=True, stable=True)
    before_BV = sorted_BV.double().cumsum(-1).roll(1, -1)
    before_BV[:, 0] = 0.0
    kept_BV = sorted_BV.where(before_BV < top_p, 0.0)
    return torch.zeros_like(prob_BV).scatter(-1, order_BV, kept_BV)


class _Decoder:
    """The network with the keys and values of all rows so far.

    Prompts are padded on the left, so that all rows write the same slot of the cache. The first n
    rows of the cache [L, rows, heads, slots, D] are in use; ``row_n`` says whose they are.
    """

    def __init__(
        self,
        policy: Policy,
        prompts: list[list[int]],
        group_size: int,
        max_new_tokens: int,
        record_routes: bool,
    ):
        self.network: Network = network(policy)
        self.group_size = group_size
        device, pad_id = policy.device, policy.tokenizer.pad_id
        self.filled = max(map(len, prompts))  # slots of the cache in use
        padded = [[pad_id] * (self.filled - len(prompt)) + prompt for prompt in prompts]
        self.prompt_PS = torch.tensor(padded, device=device)
        self.padding_P = torch.tensor([self.filled - len(x) for x in prompts], device=device)
        self.padding_n = self.padding_P.repeat_interleave(group_size)
        self.prompt_length_B = self.filled - self.padding_n
        rows = len(self.padding_n)
        self.row_n = torch.arange(rows, device=device)
        net = self.network
        longest = self.filled + max_new_tokens
        self.cos, self.sin = net.rope(longest)
        shape = (len(net.layers), rows, net.key_heads, self.filled, net.head_dim)
        self.keys, self.values = (torch.empty(shape, device=device) for _ in range(2))
        # Added to the attention scores: minus infinity at padding and at unused slots.
        self.bias_nS = torch.zeros(rows, self.filled, device=device)
        padding_nS = torch.arange(self.filled, device=device) < self.padding_n[:, None]
        self.bias_nS.masked_fill_(padding_nS, -torch.inf)
        self.routes_LBSK: Tensor | None = None
        if record_routes:
            first_K = torch.arange(net.experts_per_token, device=device)
            self.routes_LBSK = first_K.repeat(len(net.layers), rows, longest, 1)

    def prefill(self) -> Tensor:
        """Run each prompt once and copy its keys and values to its group; logits [B, V]."""
        slot_S = torch.arange(self.filled, device=self.prompt_PS.device)
        real_PS = slot_S >= self.padding_P[:, None]
        causal_SS = slot_S[:, None] >= slot_S
        # Padding attends to itself: a row without anything to attend to would be NaN.
        mask_P1SS = ((real_PS[:, None, :] & causal_SS) | (slot_S[:, None] == slot_S))[:, None]

        def attention(i: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            query, key, value = (x.transpose(1, 2) for x in (query, key, value))
            for cache, new in ((self.keys, key), (self.values, value)):
                cache[i] = new.repeat_interleave(self.group_size, 0)
            out = scaled_dot_product_attention(query, key, value, mask_P1SS, enable_gqa=True)
            return out.transpose(1, 2).flatten(2)

        position_PS = (slot_S - self.padding_P[:, None]).clamp_min(0)
        record: list[Tensor] = []
        hidden = self._hidden(self.prompt_PS, position_PS, attention, record)
        if self.routes_LBSK is not None:
            # From padding on the left to padding on the right: tokens keep their order.
            from_B = real_PS.repeat_interleave(self.group_size, 0)
            to_B = from_B.flip(1)
            for i, routes in enumerate(record):
                grouped = routes.repeat_interleave(self.group_size, 0)
                self.routes_LBSK[i, :, : self.filled][to_B] = grouped[from_B]
        return self.network.logits(hidden[:, -1]).repeat_interleave(self.group_size, 0)

    def step(self, token_n: Tensor) -> Tensor:
        """Append a token to each row; logits [n, V]."""
        net, n, slot = self.network, len(token_n), self.filled
        if slot == self.bias_nS.shape[1]:
            self.keys, self.values = (
                pad(x[:, :n], (0, 0, 0, GROWTH)) for x in (self.keys, self.values)
            )
            self.bias_nS = pad(self.bias_nS, (0, GROWTH), value=-torch.inf)
        self.filled += 1
        self.bias_nS[:, slot] = 0.0
        bias = self.bias_nS[:, None, None]

        def attention(i: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            self.keys[i, :n, :, slot] = key[:, 0]
            self.values[i, :n, :, slot] = value[:, 0]
            keys, values = self.keys[i, :n], self.values[i, :n]
            # Written out: much faster on CPU than the fused kernel for a single query.
            grouped = query.view(n, net.key_heads, -1, net.head_dim) * net.head_dim**-0.5
            scores = grouped @ keys.transpose(-1, -2) + bias
            return (scores.softmax(-1) @ values).view(n, 1, -1)

        position_n = slot - self.padding_n
        record: list[Tensor] = []
        hidden = self._hidden(token_n[:, None], position_n[:, None], attention, record)
        if self.routes_LBSK is not None:
            for i, routes in enumerate(record):
                self.routes_LBSK[i, self.row_n, position_n] = routes[:, 0]
        return net.logits(hidden[:, 0])

    def drop(self, alive_n: Tensor, alive: int) -> Tensor:
        """Keep the ``alive`` rows that live; return the old index of each row that remains.

        Living rows beyond the first ``alive`` move into the holes before it, so little is copied.
        """
        holes, movers = (~alive_n[:alive]).nonzero()[:, 0], alive + alive_n[alive:].nonzero()[:, 0]
        for cache in (self.keys, self.values):
            cache[:, holes, :, : self.filled] = cache[:, movers, :, : self.filled]
        order = torch.arange(alive, device=alive_n.device)
        order[holes] = movers
        self.row_n, self.padding_n = self.row_n[order], self.padding_n[order]
        self.bias_nS = self.bias_nS[order]
        return order

    def routes(self, length_B: Tensor) -> Tensor | None:
        """The recorded routes, reset where rows had ended or been dropped already."""
        if self.routes_LBSK is None:
            return None
        # The last token of a response is sampled, never computed.
        computed_B = self.prompt_length_B + length_B - 1
        slot_S = torch.arange(self.routes_LBSK.shape[2], device=length_B.device)
        unused_BS = slot_S >= computed_B[:, None]
        first_K = torch.arange(self.routes_LBSK.shape[-1], device=length_B.device)
        return torch.where(unused_BS[None, :, :, None], first_K, self.routes_LBSK)

    def _hidden(
        self, ids: Tensor, position: Tensor, attention: Attention, record: list[Tensor]
    ) -> Tensor:
        cos, sin = self.cos[position][:, :, None], self.sin[position][:, :, None]
        return self.network.hidden(ids, cos, sin, attention, record=record)
