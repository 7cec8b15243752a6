"""Scored responses as tensors, aligned with the log-probabilities of a forward pass."""

import dataclasses
from dataclasses import dataclass

import torch
from torch import Tensor

from respo.objectives import group_advantages
from respo.policy import Policy, Samples
from respo.rewards import strict_box
from respo.training.local.prompts import Prompt

NGRAM = 20


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
        reward_B: float64.
        advantage_B: float32.
        equal_reward_B: all responses of the group have the same reward: nothing to learn from.
        repetition_B: share of repeated 20-grams, float64.
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

    def tensors(self) -> dict[str, Tensor]:
        """Return all tensors by name."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def select(self, rows: Tensor | slice) -> "Responses":
        """Return some of the responses, padded no wider than they need."""
        chosen = {name: tensor[rows] for name, tensor in self.tensors().items()}
        width = int(chosen["length_B"].max())
        chosen["ids_BT"] = chosen["ids_BT"][:, :width]
        for name in ("mask_BT", "old_log_prob_BT"):
            chosen[name] = chosen[name][:, : width - 1]
        return Responses(**chosen)


def assemble(policy: Policy, prompts: list[Prompt], samples: Samples, group_size: int) -> Responses:
    """Join prompts and sampled responses, and score them."""
    device = samples.tokens_BT.device
    rows, limit = samples.tokens_BT.shape
    prompt_length_P = torch.tensor([len(prompt.ids) for prompt in prompts], device=device)
    prompt_length_B = prompt_length_P.repeat_interleave(group_size)
    widest = int(prompt_length_P.max())
    pad = policy.tokenizer.pad_id
    padded = [prompt.ids + [pad] * (widest - len(prompt.ids)) for prompt in prompts]
    ids_BT = torch.full((rows, widest + limit), pad, device=device)
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
    rewards = [
        strict_box(policy.tokenizer.decode(response), prompts[row // group_size].answer)
        for row, response in enumerate(tokens)
    ]
    reward_B = torch.tensor(rewards, dtype=torch.float64, device=device)
    reward_PG = reward_B.view(-1, group_size)
    equal_reward_P = (reward_PG == reward_PG[:, :1]).all(dim=1)
    repetitions = [repetition(response) for response in tokens]
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
    )


def repetition(tokens: list[int]) -> float:
    """Share of a response's 20-grams that stood in it before; 0 for fewer than 21 tokens."""
    ngrams = len(tokens) - NGRAM + 1
    if ngrams < 2:
        return 0.0
    distinct = {tuple(tokens[start : start + NGRAM]) for start in range(ngrams)}
    return 1 - len(distinct) / ngrams
