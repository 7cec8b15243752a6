from collections.abc import Callable

import pytest
import torch

from respo.policy import Policy, Samples
from respo.training.local.prompts import Prompt
from respo.training.local.responses import assemble, repetition


def test_assemble_aligns_prompts_responses_and_log_probs(
    make_policy: Callable[..., Policy],
) -> None:
    policy = make_policy()
    encode, eos = policy.tokenizer.encode, policy.tokenizer.eos_id
    prompts = [Prompt(text, encode(text), "3") for text in ("1+2=", "1+2+0=")]
    right, wrong, capped = (
        [*encode("\\boxed{3}"), eos],
        [*encode("\\boxed{4}"), eos],
        encode("1+2=3"),
    )
    sampled = [right, wrong, capped, capped]
    samples = Samples(
        tokens_BT=torch.tensor([row + [0] * (5 - len(row)) for row in sampled]),
        log_prob_BT=torch.tensor(
            [[-float(t + 1) if t < len(r) else 0.0 for t in range(5)] for r in sampled]
        ),
        length_B=torch.tensor([4, 4, 5, 5]),
        truncated_B=torch.tensor([False, False, True, True]),
        routes_LBSK=None,
    )
    responses = assemble(policy, prompts, samples, group_size=2)
    assert responses.ids_BT.tolist() == [
        [*encode("1+2="), *right, 0, 0, 0],
        [*encode("1+2="), *wrong, 0, 0, 0],
        [*encode("1+2+0="), *capped],
        [*encode("1+2+0="), *capped],
    ]
    # The token in column t is predicted in column t - 1.
    assert responses.mask_BT.long().tolist() == [
        [0, 0, 0, 1, 1, 1, 1, 0, 0, 0],
        [0, 0, 0, 1, 1, 1, 1, 0, 0, 0],
        [0, 0, 0, 0, 0, 1, 1, 1, 1, 1],
        [0, 0, 0, 0, 0, 1, 1, 1, 1, 1],
    ]
    assert responses.old_log_prob_BT[0].tolist() == [0, 0, 0, -1, -2, -3, -4, 0, 0, 0]
    assert responses.old_log_prob_BT[2].tolist() == [0, 0, 0, 0, 0, -1, -2, -3, -4, -5]
    assert responses.reward_B.tolist() == [1, -1, -1, -1]
    # (1 - 0) / (sqrt(2) + 1e-6); a group of equal rewards teaches nothing.
    assert responses.advantage_B.tolist() == pytest.approx([0.7071063, -0.7071063, 0, 0])
    assert responses.equal_reward_B.tolist() == [False, False, True, True]
    assert responses.length_B.tolist() == [8, 8, 11, 11]

    short = responses.select(slice(0, 2))
    assert short.ids_BT.shape == (2, 8)
    assert short.mask_BT.shape == short.old_log_prob_BT.shape == (2, 7)
    assert short.mask_BT.sum(1).tolist() == [4, 4]


@pytest.mark.parametrize(
    ("tokens", "share"),
    [
        ([], 0),
        ([7] * 20, 0),  # one 20-gram: nothing to repeat
        ([7] * 21, 1 / 2),  # two, the second equal to the first
        ([7] * 30, 10 / 11),
        (list(range(30)), 0),
        (list(range(20)) + list(range(20)), 1 / 21),  # of 21 20-grams the last is the first again
    ],
)
def test_repetition(tokens: list[int], share: float) -> None:
    assert repetition(tokens) == pytest.approx(share)
