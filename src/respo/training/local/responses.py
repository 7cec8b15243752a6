"""Scored responses as tensors, aligned with the log-probabilities of a forward pass."""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from respo.cli import UserError
from respo.objectives import group_advantages
from respo.policy import Policy, Samples
from respo.rewards.training import training_rewards
from respo.rewards.workers import WorkerError
from respo.training.local.prompts import Prompt

NGRAM = 20
# The tensors with a dimension of tokens, the second; those that speak of the next token have one
# column less.
WIDE = {"ids_BT", "mask_BT", "old_log_prob_BT", "routes_BTLK"}
SHORTER = {"mask_BT": 1, "old_log_prob_BT": 1}


@dataclass(frozen=True)
class Responses:
    """Scored responses, those of a group side by side; T is the width of prompt and response.

    Attributes:
        ids_BT: prompt and response, right-padded, int64.
        mask_BT: shape (B, T-1), true where the *next* token belongs to the response, so that it
            fits log-probabilities of next tokens.
        old_log_prob_BT: shape (B, T-1), the sampler's log pi_old in nats, float32.
        length_B: tokens of prompt and response together.
        response_length_B: tokens of the response, the end-of-sequence token included.
        truncated_B: the response ended at the limit.
        reward_B: float64; the length penalty, if any, is part of it.
        advantage_B: float32.
        equal_reward_B: all responses of the group have the same reward: nothing to learn from.
        repetition_B: share of repeated 20-grams, float64.
        routes_BTLK: experts to replay in the L layers, int16; None without routing replay. The last
            token and padding, which nothing depends on, hold any experts.
    """

    ids_BT: Tensor
    mask_BT: Tensor
    old_log_prob_BT: Tensor
    length_B: Tensor
    response_length_B: Tensor
    truncated_B: Tensor
    reward_B: Tensor
    advantage_B: Tensor
    equal_reward_B: Tensor
    repetition_B: Tensor
    routes_BTLK: Tensor | None = None

    def tensors(self) -> dict[str, Tensor]:
        """Return all tensors that there are by name."""
        tensors = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: tensor for name, tensor in tensors.items() if tensor is not None}

    def select(self, rows: Tensor | slice) -> "Responses":
        """Return some of the responses, padded no wider than they need."""
        chosen = {name: tensor[rows] for name, tensor in self.tensors().items()}
        width = int(chosen["length_B"].max())
        for name in WIDE & chosen.keys():
            chosen[name] = chosen[name][:, : width - SHORTER.get(name, 0)]
        return Responses(**chosen)

    def routes_LBTK(self, rows: slice, width: int) -> Tensor | None:
        """Return the routes of some rows as a forward pass over ``width`` tokens takes them."""
        if self.routes_BTLK is None:
            return None
        return self.routes_BTLK[rows, :width].permute(2, 0, 1, 3).long()


def concatenate(parts: Sequence[Responses], pad_id: int) -> Responses:
    """Join responses of different widths, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    width = max(part.ids_BT.shape[1] for part in parts)

    def widened(name: str, tensor: Tensor) -> Tensor:
        if name not in WIDE:
            return tensor
        missing = width - SHORTER.get(name, 0) - tensor.shape[1]
        after_T = (0, 0) * (tensor.dim() - 2)
        return pad(tensor, (*after_T, 0, missing), value=pad_id if name == "ids_BT" else 0)

    whole = [{n: widened(n, tensor) for n, tensor in part.tensors().items()} for part in parts]
    return Responses(**{name: torch.cat([part[name] for part in whole]) for name in whole[0]})


def assemble(
    policy: Policy,
    prompts: list[Prompt],
    samples: Samples,
    group_size: int,
    length_penalty: Callable[[int], float] | None = None,
    verifier: str = "strict_box",
) -> Responses:
    """Join prompts and sampled responses, and score them by a verifier of `respo.rewards.training`.

    ``length_penalty`` is added to the score of a response; it is given the number of its tokens.

    Raises:
        UserError: answers cannot be compared on this machine.
    """
    device = samples.tokens_BT.device
    rows, limit = samples.tokens_BT.shape
    prompt_length_P = torch.tensor([len(prompt.ids) for prompt in prompts], device=device)
    prompt_length_B = prompt_length_P.repeat_interleave(group_size)
    widest = int(prompt_length_P.max())
    pad_id = policy.tokenizer.pad_id
    padded = [prompt.ids + [pad_id] * (widest - len(prompt.ids)) for prompt in prompts]
    ids_BT = torch.full((rows, widest + limit), pad_id, device=device)
    ids_BT[:, :widest] = torch.tensor(padded, device=device).repeat_interleave(group_size, dim=0)
    # The columns of a response's tokens; each is predicted one column further left.
    column_BT = prompt_length_B.unsqueeze(1) + torch.arange(limit, device=device)
    ids_BT.scatter_(1, column_BT, samples.tokens_BT)
    valid_BT = torch.arange(limit, device=device) < samples.length_B.unsqueeze(1)
    mask_BT = torch.zeros((rows, widest + limit - 1), dtype=torch.bool, device=device)
    mask_BT.scatter_(1, column_BT - 1, valid_BT)
    old_log_prob_BT = torch.zeros(mask_BT.shape, device=device)
    old_log_prob_BT.scatter_(1, column_BT - 1, samples.log_prob_BT)

    tokens = [
        row[:length]
        for row, length in zip(samples.tokens_BT.tolist(), samples.length_B.tolist(), strict=True)
    ]
    pairs = [
        (prompts[row // group_size].answer, policy.tokenizer.decode(response))
        for row, response in enumerate(tokens)
    ]
    try:
        rewards = training_rewards(verifier, pairs)
    except WorkerError as error:
        raise UserError(str(error)) from None
    if length_penalty is not None:
        penalties = map(length_penalty, map(len, tokens))
        rewards = [reward + penalty for reward, penalty in zip(rewards, penalties, strict=True)]
    reward_B = torch.tensor(rewards, dtype=torch.float64, device=device)
    reward_PG = reward_B.view(-1, group_size)
    equal_reward_P = (reward_PG == reward_PG[:, :1]).all(dim=1)
    repetitions = [repetition(response) for response in tokens]
    routes_BTLK = None
    if samples.routes_LBSK is not None:
        routes_BTLK = samples.routes_LBSK.permute(1, 2, 0, 3).to(torch.int16)
    return Responses(
        ids_BT=ids_BT,
        mask_BT=mask_BT,
        old_log_prob_BT=old_log_prob_BT,
        length_B=prompt_length_B + samples.length_B,
        response_length_B=samples.length_B,
        truncated_B=samples.truncated_B,
        reward_B=reward_B,
        advantage_B=group_advantages(reward_B, group_size).float(),
        equal_reward_B=equal_reward_P.repeat_interleave(group_size),
        repetition_B=torch.tensor(repetitions, dtype=torch.float64, device=device),
        routes_BTLK=routes_BTLK,
    )


def repetition(tokens: list[int]) -> float:
    """Share of a response's 20-grams that stood in it before; 0 for fewer than 21 tokens."""
    ngrams = len(tokens) - NGRAM + 1
    if ngrams < 2:
        return 0.0
    distinct = {tuple(tokens[start : start + NGRAM]) for start in range(ngrams)}
    return 1 - len(distinct) / ngrams
