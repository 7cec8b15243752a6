import dataclasses

import pytest
import torch
from scipy import stats

import respo.policy.sampler
from respo.policy import Policy, Samples, forward, forward_with_routes, sample, token_log_probs
from respo.policy.sampler import inverse_cumulative, nucleus

PROMPTS = [[5, 14, 6, 17], [8, 14, 9, 15, 7, 16, 4, 17], [4]]
GROUP, LIMIT = 6, 24
CLOSEST_TO_ONE = 1 - 2**-53


@pytest.fixture
def uniform_BT() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(len(PROMPTS) * GROUP, LIMIT, generator=generator, dtype=torch.float64)


def sequence(samples: Samples, row: int, prompts=PROMPTS, group: int = GROUP) -> torch.Tensor:
    """Prompt and response of a row, [1, T]."""
    response = samples.tokens_BT[row, : samples.length_B[row]].tolist()
    return torch.tensor([prompts[row // group] + response])


# --- the inverse of the cumulative distribution ---------------------------------------------------


@pytest.mark.parametrize(
    ("probabilities", "uniform", "token"),
    # By hand from the definition.
    [
        ([0.5, 0.25, 0.25], 0.0, 0),
        ([0.5, 0.25, 0.25], 0.49, 0),
        ([0.5, 0.25, 0.25], 0.5, 1),
        ([0.5, 0.25, 0.25], 0.75, 2),
        ([0.5, 0.25, 0.25], CLOSEST_TO_ONE, 2),
        ([0.0, 1.0, 0.0], 0.0, 1),
        ([0.0, 1.0, 0.0], CLOSEST_TO_ONE, 1),
        ([0.5, 0.0, 0.5, 0.0], 0.5, 2),
        ([0.5, 0.0, 0.5, 0.0], CLOSEST_TO_ONE, 2),
        ([0.1] * 10 + [0.0], CLOSEST_TO_ONE, 9),
        # Not normalised: a nucleus of 0.6.
        ([0.4, 0.2, 0.0], 0.7, 1),
        ([0.4, 0.2, 0.0], CLOSEST_TO_ONE, 1),
    ],
)
def test_inverse_cumulative(probabilities, uniform, token):
    prob_BV = torch.tensor([probabilities])
    uniform_B = torch.tensor([uniform], dtype=torch.float64)
    assert inverse_cumulative(prob_BV, uniform_B).tolist() == [token]


def test_a_token_of_probability_zero_is_never_drawn():
    prob_BV = torch.rand(20_000, 20, generator=torch.Generator().manual_seed(0))
    prob_BV *= prob_BV > 0.6
    prob_BV = prob_BV[prob_BV.sum(1) > 0]
    for uniform in (0.0, 0.3, CLOSEST_TO_ONE):
        uniform_B = torch.full((len(prob_BV),), uniform, dtype=torch.float64)
        token_B = inverse_cumulative(prob_BV, uniform_B)
        assert (prob_BV.gather(1, token_B[:, None]) > 0).all()


# --- top-p ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("probabilities", "top_p", "kept"),
    # By hand: a token is kept if those before it, most probable first, sum to less than top-p.
    [
        ([0.125, 0.5, 0.25, 0.125], 1.0, [0, 1, 2, 3]),
        ([0.125, 0.5, 0.25, 0.125], 0.75, [1, 2]),
        ([0.125, 0.5, 0.25, 0.125], 0.76, [0, 1, 2]),
        ([0.125, 0.5, 0.25, 0.125], 0.5, [1]),
        ([0.125, 0.5, 0.25, 0.125], 1e-9, [1]),
        ([0.25, 0.25, 0.25, 0.25], 0.5, [0, 1]),
        ([0.25, 0.25, 0.25, 0.25], 0.6, [0, 1, 2]),
        ([0.0, 1.0, 0.0, 0.0], 0.9, [1]),
    ],
)
def test_nucleus(probabilities, top_p, kept):
    expected = [p if i in kept else 0.0 for i, p in enumerate(probabilities)]
    assert nucleus(torch.tensor([probabilities]), top_p).tolist() == [expected]


def test_nucleus_treats_rows_apart():
    prob_BV = torch.tensor([[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]])
    assert nucleus(prob_BV, 0.5).tolist() == [[0.5, 0.0, 0.0], [0.0, 0.0, 0.5]]


# --- distribution ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.5, 1.0), (1.0, 0.7)])
def test_sampled_frequencies_are_the_probabilities(policy: Policy, temperature, top_p):
    prompt, draws = PROMPTS[1], 20_000
    generator = torch.Generator().manual_seed(5)
    uniform_BT = torch.rand(draws, 1, generator=generator)
    samples = sample(policy, [prompt], draws, 1, uniform_BT, temperature=temperature, top_p=top_p)
    logits_V = forward(policy, torch.tensor([prompt]))[0, -1].double() / temperature
    full_V = logits_V.softmax(0)
    probability_V = nucleus(full_V[None], top_p)[0]
    probability_V = probability_V / probability_V.sum()
    count_V = torch.bincount(samples.tokens_BT[:, 0], minlength=20)
    assert count_V[probability_V == 0].sum() == 0
    possible = probability_V > 1e-4
    observed, expected = count_V[possible].numpy(), probability_V[possible].numpy()
    expected = expected / expected.sum() * observed.sum()
    assert stats.chisquare(observed, expected).pvalue > 0.01
    # The log-probabilities are those of the whole distribution, not of the nucleus.
    torch.testing.assert_close(
        samples.log_prob_BT[:, 0].double(), full_V.log()[samples.tokens_BT[:, 0]], rtol=0, atol=1e-5
    )


def test_at_low_temperature_the_most_probable_tokens_are_taken(policy, uniform_BT):
    samples = sample(policy, PROMPTS, GROUP, LIMIT, uniform_BT, temperature=1e-4)
    for row in range(len(uniform_BT)):
        ids_BT, prompt = sequence(samples, row), PROMPTS[row // GROUP]
        best_T = forward(policy, ids_BT)[0, len(prompt) - 1 : -1].argmax(-1)
        assert best_T.tolist() == ids_BT[0, len(prompt) :].tolist()


# --- agreement with the forward pass --------------------------------------------------------------


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_log_probs_equal_the_forward_pass(policy, uniform_BT, temperature):
    samples = sample(policy, PROMPTS, GROUP, LIMIT, uniform_BT, temperature=temperature)
    assert len(set(samples.length_B.tolist())) > 3, "the rows should end at various times"
    for row, length in enumerate(samples.length_B.tolist()):
        log_prob_BT, _ = token_log_probs(policy, sequence(samples, row), temperature)
        torch.testing.assert_close(
            samples.log_prob_BT[row, :length], log_prob_BT[0, -length:], rtol=0, atol=1e-5
        )


def test_log_probs_equal_transformers(policy, uniform_BT, tmp_path):
    transformers = pytest.importorskip("transformers")
    respo.policy.save_policy(policy, tmp_path / "policy")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "policy")
    samples = sample(policy, PROMPTS, GROUP, LIMIT, uniform_BT)
    for row in range(0, len(uniform_BT), GROUP):
        ids_BT, length = sequence(samples, row), int(samples.length_B[row])
        log_prob_TV = model(ids_BT).logits[0, :-1].log_softmax(-1)
        expected_T = log_prob_TV.gather(-1, ids_BT[0, 1:, None])[-length:, 0]
        torch.testing.assert_close(
            samples.log_prob_BT[row, :length], expected_T.detach(), rtol=0, atol=1e-5
        )


# --- shape of the result --------------------------------------------------------------------------


def test_responses_end_once_and_padding_follows(policy, uniform_BT):
    samples = sample(policy, PROMPTS, GROUP, LIMIT, uniform_BT)
    assert samples.tokens_BT.shape == samples.log_prob_BT.shape == (18, LIMIT)
    assert samples.log_prob_BT.dtype == torch.float32
    assert samples.truncated_B.any()
    assert not samples.truncated_B.all()
    for row, length in enumerate(samples.length_B.tolist()):
        response = samples.tokens_BT[row, :length].tolist()
        assert samples.tokens_BT[row, length:].tolist() == [0] * (LIMIT - length)
        assert samples.log_prob_BT[row, length:].tolist() == [0.0] * (LIMIT - length)
        assert 1 not in response[:-1]
        assert (response[-1] != 1) == bool(samples.truncated_B[row])
        assert not samples.truncated_B[row] or length == LIMIT


def test_an_end_at_the_limit_is_no_truncation(policy, uniform_BT):
    long = sample(policy, PROMPTS, GROUP, LIMIT, uniform_BT)
    row = int((~long.truncated_B).nonzero()[0])
    limit = int(long.length_B[row])
    short = sample(policy, PROMPTS, GROUP, limit, uniform_BT[:, :limit])
    assert not short.truncated_B[row]
    assert int(short.length_B[row]) == limit
    assert torch.equal(short.tokens_BT, long.tokens_BT[:, :limit])


def test_rows_of_a_prompt_are_adjacent_and_depend_on_their_own_numbers(policy, uniform_BT):
    together = sample(policy, PROMPTS, GROUP, LIMIT, uniform_BT)
    for number, prompt in enumerate(PROMPTS):
        rows = slice(number * GROUP, (number + 1) * GROUP)
        alone = sample(policy, [prompt], GROUP, LIMIT, uniform_BT[rows])
        assert torch.equal(alone.tokens_BT, together.tokens_BT[rows])
    one = sample(policy, [PROMPTS[1]], 1, LIMIT, uniform_BT[GROUP + 2 : GROUP + 3])
    assert torch.equal(one.tokens_BT[0], together.tokens_BT[GROUP + 2])


@pytest.mark.parametrize(
    ("share", "every", "growth"), [(0.0, 1, 1), (0.5, 1, 16), (0.0, 5, 7), (1.0, 16, 64)]
)
def test_dropping_finished_rows_changes_nothing(
    policy, uniform_BT, monkeypatch, share, every, growth
):
    routes = policy.num_experts > 0
    expected = sample(policy, PROMPTS, GROUP, LIMIT, uniform_BT, record_routes=routes)
    monkeypatch.setattr(respo.policy.sampler, "FINISHED_SHARE", share)
    monkeypatch.setattr(respo.policy.sampler, "GROWTH", growth)
    monkeypatch.setitem(respo.policy.sampler.COUNT_EVERY, "cpu", every)
    samples = sample(policy, PROMPTS, GROUP, LIMIT, uniform_BT, record_routes=routes)
    assert torch.equal(samples.tokens_BT, expected.tokens_BT)
    torch.testing.assert_close(samples.log_prob_BT, expected.log_prob_BT, rtol=0, atol=1e-5)
    assert torch.equal(samples.length_B, expected.length_B)
    if routes:
        assert torch.equal(samples.routes_LBSK, expected.routes_LBSK)


def test_sampling_stops_when_all_rows_have_ended(make_policy, monkeypatch):
    policy = make_policy()
    # Every token ends the response: nothing is left to compute after the first.
    monkeypatch.setattr(
        respo.policy.sampler,
        "inverse_cumulative",
        lambda prob_BV, _: torch.ones(len(prob_BV)).long(),
    )
    monkeypatch.setattr(respo.policy.sampler._Decoder, "step", None)
    samples = sample(policy, PROMPTS, 2, LIMIT, torch.zeros(6, LIMIT))
    assert samples.length_B.tolist() == [1] * 6
    assert not samples.truncated_B.any()


def test_padding_and_end_may_be_one_token(make_policy, uniform_BT):
    policy = make_policy()
    expected = sample(policy, PROMPTS, GROUP, LIMIT, uniform_BT)
    policy = dataclasses.replace(policy, tokenizer=dataclasses.replace(policy.tokenizer, pad_id=1))
    samples = sample(policy, PROMPTS, GROUP, LIMIT, uniform_BT)
    assert torch.equal(samples.length_B, expected.length_B)
    assert torch.equal(samples.truncated_B, expected.truncated_B)


def test_results_are_ordinary_tensors(policy, uniform_BT):
    for weight in policy.parameters():
        weight.requires_grad_()
    samples = sample(policy, PROMPTS, GROUP, LIMIT, uniform_BT)
    assert not samples.log_prob_BT.requires_grad
    assert not samples.log_prob_BT.is_inference()
    scale = torch.ones(1, requires_grad=True)
    (samples.log_prob_BT * scale).sum().backward()
    assert scale.grad is not None


@pytest.mark.parametrize(
    ("prompts", "shape"), [([[5], []], (4, 3)), ([[5]], (2, 4)), ([[5]], (3, 3)), ([], (0, 3))]
)
def test_empty_prompts_and_other_shapes_are_refused(make_policy, prompts, shape):
    with pytest.raises(ValueError, match="need uniforms of shape"):
        sample(make_policy(), prompts, 2, 3, torch.zeros(shape))


# --- routes ---------------------------------------------------------------------------------------


def test_routes_are_only_recorded_on_demand(make_policy, uniform_BT):
    assert sample(make_policy(4), PROMPTS, GROUP, LIMIT, uniform_BT).routes_LBSK is None


def test_recorded_routes_are_those_of_the_forward_pass(make_policy, uniform_BT):
    policy = make_policy(4)
    samples = sample(policy, PROMPTS, GROUP, LIMIT, uniform_BT, record_routes=True)
    assert samples.routes_LBSK.shape == (2, 18, 8 + LIMIT, 2)
    for row in range(len(uniform_BT)):
        ids_BT = sequence(samples, row)
        computed = ids_BT.shape[1] - 1
        _, routes_LBTK = forward_with_routes(policy, ids_BT)
        assert torch.equal(samples.routes_LBSK[:, row, :computed], routes_LBTK[:, 0, :computed])
        assert (samples.routes_LBSK[:, row, computed:] == torch.tensor([0, 1])).all()


def test_replay_of_recorded_routes(make_policy, uniform_BT):
    policy = make_policy(4)
    samples = sample(policy, PROMPTS, GROUP, LIMIT, uniform_BT, record_routes=True)
    row = 7
    ids_BT, length = sequence(samples, row), int(samples.length_B[row])
    routes_LBTK = samples.routes_LBSK[:, row : row + 1, : ids_BT.shape[1]]
    replayed_BT, _ = token_log_probs(policy, ids_BT, 1.0, routes_LBTK=routes_LBTK)
    expected_T = samples.log_prob_BT[row, :length]
    torch.testing.assert_close(replayed_BT[0, -length:], expected_T, rtol=0, atol=1e-5)
    other_BT, _ = token_log_probs(policy, ids_BT, 1.0, routes_LBTK=3 - routes_LBTK)
    assert (other_BT[0, -length:] - expected_T).abs().max() > 1e-2
