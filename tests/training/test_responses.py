from collections.abc import Callable

import pytest
import torch

from respo.cli import UserError
from respo.policy import Policy, Samples, character_tokenizer
from respo.rewards.workers import WorkerError
from respo.training.local import responses as responses_module
from respo.training.local.prompts import Prompt
from respo.training.local.responses import Responses, assemble, concatenate, repetition


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


def test_the_length_penalty_is_part_of_the_reward(make_policy: Callable[..., Policy]) -> None:
    policy = make_policy()
    encode, eos = policy.tokenizer.encode, policy.tokenizer.eos_id
    right, long = [*encode("\\boxed{3}"), eos], [*encode("3=3;\\boxed{3}"), eos]
    assert (len(right), len(long)) == (4, 8)
    samples = Samples(
        tokens_BT=torch.tensor([right + [0] * 4, long]),
        log_prob_BT=torch.zeros(2, 8),
        length_B=torch.tensor([4, 8]),
        truncated_B=torch.tensor([False, False]),
        routes_LBSK=None,
    )
    prompts = [Prompt("1+2=", encode("1+2="), "3")]
    plain = assemble(policy, prompts, samples, 2)
    assert plain.reward_B.tolist() == [1, 1]
    assert plain.equal_reward_B.all()
    penalised = assemble(policy, prompts, samples, 2, lambda tokens: -tokens / 16)
    assert penalised.reward_B.tolist() == [0.75, 0.5]
    assert not penalised.equal_reward_B.any()
    assert penalised.advantage_B.tolist() == pytest.approx([0.5**0.5, -(0.5**0.5)], rel=1e-4)


@pytest.mark.parametrize(
    ("verifier", "expected"), [("strict_box", [1, -1, -1]), ("math_verify", [1, 1, -1])]
)
def test_the_verifier_decides(
    make_policy: Callable[..., Policy], verifier: str, expected: list[float]
) -> None:
    """The text of the tokens, without the end, against the answer of the prompt."""
    policy = make_policy()
    encode, eos = policy.tokenizer.encode, policy.tokenizer.eos_id
    sampled = [[*encode(text), eos] for text in ("\\boxed{3}", "1+2=3", "=;=")]
    longest = max(map(len, sampled))
    samples = Samples(
        tokens_BT=torch.tensor([row + [0] * (longest - len(row)) for row in sampled]),
        log_prob_BT=torch.zeros(3, longest),
        length_B=torch.tensor([len(row) for row in sampled]),
        truncated_B=torch.tensor([False] * 3),
        routes_LBSK=None,
    )
    prompts = [Prompt("1+2=", encode("1+2="), "3")]
    responses = assemble(policy, prompts, samples, 3, verifier=verifier)
    assert responses.reward_B.tolist() == expected


def test_answers_that_cannot_be_compared_here(
    make_policy: Callable[..., Policy], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise WorkerError("answers cannot be compared: install math-verify")

    monkeypatch.setattr(responses_module, "training_rewards", fail)
    with pytest.raises(UserError, match="install math-verify"):
        test_the_verifier_decides(make_policy, "math_verify", [])


def some_responses(width: int, routes: bool) -> Responses:
    """Two rows whose tensors count their elements, so that each place is known again."""
    ids_BT = torch.arange(1, 2 * width + 1).view(2, width)
    return Responses(
        ids_BT=ids_BT,
        mask_BT=torch.ones(2, width - 1, dtype=torch.bool),
        old_log_prob_BT=-ids_BT[:, 1:].float(),
        length_B=torch.tensor([width - 1, width]),
        response_length_B=torch.tensor([1, 2]),
        truncated_B=torch.tensor([False, True]),
        reward_B=torch.tensor([1.0, -1.0], dtype=torch.float64),
        advantage_B=torch.tensor([0.7, -0.7]),
        equal_reward_B=torch.tensor([False, False]),
        repetition_B=torch.zeros(2, dtype=torch.float64),
        routes_BTLK=ids_BT[..., None, None].expand(2, width, 3, 2).short() if routes else None,
    )


@pytest.mark.parametrize("routes", [False, True])
def test_parts_of_different_width_are_joined(routes: bool) -> None:
    pad_id = character_tokenizer().pad_id + 17  # not 0, with which all else is padded
    narrow, wide = some_responses(3, routes), some_responses(5, routes)
    joined = concatenate([narrow, wide, narrow], pad_id)
    assert joined.ids_BT[0].tolist() == [1, 2, 3, pad_id, pad_id]
    assert joined.mask_BT[0].tolist() == [True, True, False, False]
    assert joined.old_log_prob_BT[0].tolist() == [-2, -3, 0, 0]
    for rows, part in ((slice(0, 2), narrow), (slice(2, 4), wide), (slice(4, 6), narrow)):
        again = joined.select(rows)
        assert again.tensors().keys() == part.tensors().keys()
        for name, tensor in again.tensors().items():
            assert torch.equal(tensor, part.tensors()[name]), name
    assert (joined.routes_BTLK is not None) == routes
    assert concatenate([narrow], pad_id) is narrow


def test_routes_stay_with_their_rows_and_tokens() -> None:
    responses = some_responses(5, routes=True).select(torch.tensor([1, 0]))
    routes_LBTK = responses.routes_LBTK(slice(0, 2), 4)
    assert routes_LBTK is not None
    assert routes_LBTK.shape == (3, 2, 4, 2)
    assert routes_LBTK.dtype == torch.int64
    assert routes_LBTK[2, :, :, 1].tolist() == [[6, 7, 8, 9], [1, 2, 3, 4]]
    assert some_responses(5, routes=False).routes_LBTK(slice(0, 2), 4) is None


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
