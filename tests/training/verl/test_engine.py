"""verl's FSDP engine against the local trainer's forward pass and loss, on the same mini-batch.

verl 0.9.1 runs on CPU (`cpu_platform.py`) in processes of its own, one per rank
(`engine_cases.py`): padded and packed, in micro-batches of 1, 2 and 4 responses, on 1 and 2 ranks.
"""

import importlib.util
import json
import os
import socket
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from respo import objectives
from respo.config.schema import Architecture
from respo.policy import create_policy, load_policy, save_policy, token_log_probs
from respo.policy.sequences import forward
from respo.training.local.metrics import BRANCH_SUMS, branches, measure
from respo.training.local.responses import Responses
from respo.training.verl.update_log import FILE

if importlib.util.find_spec("verl") is None:
    pytest.skip("verl is not installed", allow_module_level=True)

pytestmark = pytest.mark.peers

HERE = Path(__file__).parent
ROWS, RESPONSE, VOCABULARY, EOS = 8, 8, 20, 1
ARCHITECTURE = Architecture(
    model_type="qwen3",
    hidden_size=16,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=8,
    intermediate_size=16,
)
LEARNING_RATE = 0.5  # of engine_cases.py
KL, ENTROPY = 0.1, 0.05
CLASSES = {
    "grpo": "GrpoConfig",
    "respo": "RespoConfig",
    "bapo": "BapoConfig",
    "entropy_adv": "EntropyAdvConfig",
    "tokens": "TokensConfig",
}
# Depends on the whole mini-batch in a way that shows: c is the number of its tokens.
OWN_OBJECTIVE = """
import torch
from respo.objectives import objective


def count(mask_BT):
    return mask_BT.sum().double().unsqueeze(0)


@objective("tokens", sums=count)
def tokens(mask_BT, batch_sums):
    return batch_sums.expand(mask_BT.shape)
"""


def case(
    objective, packed=True, micro_batch=2, options=(), entropy=False, dynamic=False, step=False
):
    chosen = [f"policy_loss.loss_mode={objective}"]
    if objective.startswith("respo_"):
        objective = objective.removeprefix("respo_")
        target = f"respo.training.verl.plugin.{CLASSES[objective]}"
        chosen.append(f"policy_loss._target_={target}")
    return {
        "objective": objective,
        "packed": packed,
        "micro_batch": micro_batch,
        "entropy": entropy or objective == "entropy_adv",
        "dynamic": dynamic,
        "step": step,
        "reference": True,
        "same_step": None,
        "options": [*chosen, *options],
    }


SPLITS = list(product(("grpo", "respo", "bapo", "entropy_adv"), (False, True), (1, 2, 4)))
CASES = {
    f"{name}-{'packed' if packed else 'padded'}-{rows}": case(f"respo_{name}", packed, rows)
    for name, packed, rows in SPLITS
}
CASES |= {
    aggregation: case(
        "respo_respo",
        options=[f"loss_agg_mode={aggregation}", f"loss_scale_factor={RESPONSE}"],
    )
    for aggregation in objectives.AGGREGATIONS[1:]
}
REGULARISED = [
    "use_kl_loss=True",
    f"kl_loss_coef={KL}",
    f"entropy_coeff={ENTROPY}",
]
CASES |= {
    "kl-and-entropy-padded": case("respo_grpo", False, options=REGULARISED, entropy=True),
    "kl-and-entropy-packed": case("respo_grpo", True, options=REGULARISED, entropy=True),
    "dynamic": case("respo_bapo", dynamic=True),
    "own": case("respo_tokens"),
    "verl": case("vanilla"),
    "no-entropy": case("respo_entropy_adv") | {"entropy": False},
    "no-target": case(
        "respo_grpo", options=["policy_loss._target_=verl.workers.config.PolicyLossConfig"]
    ),
    "step": case("respo_grpo", step=True),
}
# The second update of a step, without a reference policy and entropies.
CASES["next"] = case("respo_grpo") | {"same_step": len(CASES) - 1, "reference": False}
FAILING = {"no-entropy", "no-target"}
NAMES = list(CASES)


def make_batch(policy):
    """Prompts of 1 to 5 tokens, responses of 1 to 8; log-ratios around 0, one advantage 0."""
    generator = torch.Generator().manual_seed(0)
    prompt_B = torch.randint(1, 6, (ROWS,), generator=generator)
    response_B = torch.randint(1, RESPONSE + 1, (ROWS,), generator=generator)
    width = int((prompt_B + response_B).max())
    ids_BT = torch.randint(2, VOCABULARY, (ROWS, width), generator=generator)
    batch = {
        "ids_BT": ids_BT,
        "position_BT": torch.arange(width).repeat(ROWS, 1),
        "prompt_length_B": prompt_B,
        "response_length_B": response_B,
        "mask_BT": (torch.arange(RESPONSE) < response_B.unsqueeze(1)).long(),
    }
    with torch.no_grad():
        log_prob_BT = of_responses(token_log_probs(policy, ids_BT, 1.0)[0], batch)
    for name, spread in (("old_log_prob_BT", 0.4), ("reference_BT", 0.8)):
        batch[name] = log_prob_BT + spread * torch.randn(ROWS, RESPONSE, generator=generator)
    advantage_B = torch.randn(ROWS, generator=generator)
    advantage_B[3] = 0.0
    # Few enough positive ones that BAPO raises its bounds, see the test of that.
    advantage_B = torch.where(advantage_B > 0, 0.4 * advantage_B, advantage_B)
    batch["advantage_BT"] = advantage_B.unsqueeze(1).repeat(1, RESPONSE)
    batch["score_BT"] = torch.zeros(ROWS, RESPONSE)
    batch["score_BT"][torch.arange(ROWS), response_B - 1] = torch.randn(ROWS, generator=generator)
    # Every other response ends with the end-of-sequence token.
    ids_BT[torch.arange(0, ROWS, 2), (prompt_B + response_B - 1)[::2]] = EOS
    return batch


def of_responses(next_token_BT, batch):
    """The part of a tensor about next tokens of whole sequences that is about responses."""
    column_BT = batch["prompt_length_B"].unsqueeze(1) - 1 + torch.arange(RESPONSE)
    return next_token_BT.gather(1, column_BT.clamp(max=next_token_BT.shape[1] - 1))


class Local:
    """The local trainer's view of the same mini-batch."""

    def __init__(self, folder):
        self.policy = load_policy(folder / "model")
        self.batch = load_file(folder / "batch.safetensors")
        self.mask_BT = self.batch["mask_BT"].bool()
        self.advantage_B = self.batch["advantage_BT"][:, 0]

    def weights(self, aggregation):
        return objectives.token_weights(
            aggregation,
            self.mask_BT,
            batch_tokens=int(self.mask_BT.sum()),
            batch_responses=ROWS,
            max_response_tokens=RESPONSE,
        )

    def loss(self, objective, aggregation="token-mean", kl=0.0, entropy=0.0, **parameters):
        batch, mask_BT = self.batch, self.mask_BT
        log_prob_BTV = forward(self.policy, batch["ids_BT"])[:, :-1].log_softmax(-1)
        log_prob_BT = of_responses(token_log_probs(self.policy, batch["ids_BT"], 1.0)[0], batch)
        entropy_BT = of_responses(-(log_prob_BTV.exp() * log_prob_BTV).sum(-1), batch)
        self.entropy_BT = entropy_BT.detach()
        self.log_ratio_BT = (log_prob_BT - batch["old_log_prob_BT"]).detach()
        self.coefficient_BT = objectives.coefficients(
            objective,
            self.log_ratio_BT,
            self.advantage_B,
            mask_BT,
            batch["old_log_prob_BT"],
            entropy_BT=entropy_BT.detach(),
            **parameters,
        )
        weight_B = self.weights(aggregation)
        loss = objectives.policy_loss(
            log_prob_BT, self.coefficient_BT, self.advantage_B, mask_BT, weight_B
        )
        loss = loss + kl * objectives.kl_loss(log_prob_BT, batch["reference_BT"], mask_BT, weight_B)
        return loss - entropy * objectives.entropy_bonus(entropy_BT, mask_BT, weight_B)

    def gradient(self, *args, **options):
        names = sorted(self.policy.weights)
        leaves = [self.policy.weights[name].requires_grad_() for name in names]
        return dict(
            zip(names, torch.autograd.grad(self.loss(*args, **options), leaves), strict=True)
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("verl")
    policy = create_policy(ARCHITECTURE, max_positions=64, seed=0)
    save_policy(policy, folder / "model")
    save_file(make_batch(policy), folder / "batch.safetensors")
    (folder / "cases.json").write_text(json.dumps(list(CASES.values())))
    (folder / "methods").mkdir()
    (folder / "methods" / "tokens.py").write_text(OWN_OBJECTIVE)
    processes = [start(folder, rank, ranks) for ranks in (1, 2) for rank in range(ranks)]
    try:
        for process, log in processes:
            assert process.wait(timeout=300) == 0, log.read_text()[-4000:]
    finally:
        for process, _ in processes:
            process.kill()
            process.wait()
    return folder


def start(folder, rank, ranks):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = PORTS.setdefault(ranks, probe.getsockname()[1])
    log = folder / f"log-{ranks}-{rank}"
    environment = os.environ | {
        "VERL_USE_EXTERNAL_MODULES": "cpu_platform,respo.training.verl.plugin",
        "VERL_PLATFORM": "cpu",
        "VERL_ENGINE_DEVICE": "cuda",
        "RESPO_METHODS": str(folder / "methods"),
        "PYTHONPATH": os.pathsep.join((str(HERE), os.environ.get("PYTHONPATH", ""))),
        "RESPO_RUN_METRICS": str(folder / f"log-{ranks}"),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "RANK": str(rank),
        "WORLD_SIZE": str(ranks),
    }
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", HERE / "engine_cases.py", folder],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    return process, log


PORTS: dict[int, int] = {}


@pytest.fixture(scope="module")
def local(folder):
    return Local(folder)


@pytest.fixture(scope="module")
def metrics(folder):
    read = {ranks: json.loads((folder / f"metrics-{ranks}.json").read_text()) for ranks in (1, 2)}
    return lambda name, ranks: read[ranks][NAMES.index(name)]


@pytest.fixture(scope="module")
def tensors(folder):
    return lambda name, ranks: load_file(
        folder / f"gradient-{ranks}-{NAMES.index(name)}.safetensors"
    )


def expected_gradient(local, name):
    """What the local loss gives for a case."""
    if name == "own":  # c = 1 times the number of tokens
        gradient = local.gradient("grpo_no_is")
        return {key: value * int(local.mask_BT.sum()) for key, value in gradient.items()}
    if name == "verl":
        return local.gradient("grpo", dual_clip=3.0)
    if name.startswith("kl"):
        return local.gradient("grpo", kl=KL, entropy=ENTROPY)
    aggregation = name if name in objectives.AGGREGATIONS else "token-mean"
    return local.gradient(CASES[name]["objective"], aggregation)


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("name", [name for name in NAMES if name not in FAILING | {"step", "next"}])
def test_gradient_is_that_of_the_local_trainer(local, tensors, name, ranks):
    expected, actual = expected_gradient(local, name), tensors(name, ranks)
    assert set(actual) == set(expected)
    largest = max(gradient.abs().max() for gradient in expected.values())
    worst = max((actual[key] - expected[key]).abs().max() for key in expected)
    # float32: 4e-7 measured padded, 3e-6 packed
    assert worst / largest < 2e-5


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_plain_step_moves_the_weights_by_the_gradient(local, tensors, ranks):
    weights = tensors("step", ranks)
    for key, gradient in local.gradient("grpo").items():
        expected = local.policy.weights[key].detach() - LEARNING_RATE * gradient
        torch.testing.assert_close(weights[key], expected, rtol=1e-5, atol=1e-5)


def expected_sums(local, objective):
    local.loss(objective)
    mask_BT, log_ratio_BT = local.mask_BT, local.log_ratio_BT
    sums = {
        "respo/tokens": mask_BT.sum(),
        "respo/log_ratio": log_ratio_BT[mask_BT].sum(),
        "respo/clamped": objectives.clamped_exponents(objective, log_ratio_BT, mask_BT),
    }
    given = (local.coefficient_BT, local.advantage_B, mask_BT)
    by_branch = objectives.branch_sums(*given, log_ratio_BT)
    for row, sign in enumerate(("pos", "neg")):
        by_sign = objectives.coefficient_sums(*given) | objectives.ratio_sums(
            local.advantage_B, mask_BT, log_ratio_BT
        )
        for key, value in by_sign.items():
            sums[f"respo/{key}/{sign}"] = value[row]
        for key, value in by_branch.items():
            for index in range(value.shape[1]):
                sums[f"respo/branch/{key}/{sign}/{index}"] = value[row, index]
    return {key: float(value) for key, value in sums.items()}


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("split", SPLITS, ids=lambda split: "-".join(map(str, split)))
def test_diagnostics_are_sums_over_the_whole_mini_batch(local, metrics, split, ranks):
    objective, packed, rows = split
    actual = metrics(f"{objective}-{'packed' if packed else 'padded'}-{rows}", ranks)
    actual = {key: value for key, value in actual.items() if key.startswith("respo/")}
    assert actual == pytest.approx(expected_sums(local, objective), rel=1e-5, abs=1e-6)


ONE_RANK_OF_TWO = [slice(first, None, 2) for first in range(2)]
MICRO_BATCHES = [[slice(i, i + rows) for i in range(0, ROWS, rows)] for rows in (1, 2, 4)]


@pytest.mark.parametrize("parts", [ONE_RANK_OF_TWO, *MICRO_BATCHES], ids=len)
def test_bapo_differs_between_the_mini_batch_and_its_parts(local, parts):
    local.loss("bapo")
    of_parts_BT = torch.empty_like(local.coefficient_BT)
    for rows in parts:
        of_parts_BT[rows] = objectives.coefficients(
            "bapo",
            local.log_ratio_BT[rows],
            local.advantage_B[rows],
            local.mask_BT[rows],
            local.batch["old_log_prob_BT"][rows],
        )
    assert not torch.equal(of_parts_BT, local.coefficient_BT)


def test_sums_see_both_signs_and_several_bins(local):
    sums = expected_sums(local, "grpo")
    assert sums["respo/clipped/pos"] > 0
    assert sums["respo/clipped/neg"] > 0
    filled = [key for key, value in sums.items() if "branch/responses" in key and value > 0]
    assert len(filled) >= 4
    # One response has advantage 0.
    assert sum(sums[key] for key in filled) == ROWS - 1


@pytest.mark.parametrize("ranks", [1, 2])
def test_verls_own_losses_are_left_alone(metrics, ranks):
    assert not [key for key in metrics("verl", ranks) if key.startswith("respo/")]


def test_a_missing_entropy_is_told(metrics):
    assert "set actor_rollout_ref.actor.calculate_entropy=True" in metrics("no-entropy", 1)["error"]


def test_a_missing_configuration_class_is_told(metrics):
    assert "_target_=respo.training.verl.plugin.GrpoConfig" in metrics("no-target", 1)["error"]


@pytest.fixture(scope="module")
def rows(folder):
    """Of the log of updates, by number of ranks: {(step, update of it): row}."""
    return {
        ranks: {
            (row["rollout_batch"], row["mini_batch"]): row
            for row in map(json.loads, (folder / f"log-{ranks}" / FILE).read_text().splitlines())
        }
        for ranks in (1, 2)
    }


def row_of(rows, name):
    if name == "next":
        return rows[NAMES.index("step") + 1, 2]
    return rows[NAMES.index(name) + 1, 1]


def local_row(local, name):
    """What the local trainer writes of the same update."""
    objective = CASES[name]["objective"]
    local.loss(objective)
    batch, mask_BT = local.batch, local.mask_BT
    length_B = batch["response_length_B"]
    last_B = (batch["prompt_length_B"] + length_B - 1).unsqueeze(1)
    responses = Responses(
        ids_BT=batch["ids_BT"],
        mask_BT=mask_BT,
        old_log_prob_BT=batch["old_log_prob_BT"],
        length_B=batch["prompt_length_B"] + length_B,
        response_length_B=length_B,
        truncated_B=batch["ids_BT"].gather(1, last_B).squeeze(1) != EOS,
        reward_B=batch["score_BT"].sum(dim=1).double(),
        advantage_B=local.advantage_B,
        equal_reward_B=local.advantage_B == 0,
        repetition_B=torch.zeros(ROWS),
    )
    tensors = {"log_ratio_BT": local.log_ratio_BT, "coefficient_BT": local.coefficient_BT}
    return {
        **measure(responses, objective, **tensors, entropy_BT=local.entropy_BT),
        "branches": branches(responses, **tensors).tolist(),
    }


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("name", ["respo-padded-1", "bapo-packed-2", "entropy_adv-packed-4"])
def test_a_logged_update_is_what_the_local_trainer_measures(local, rows, name, ranks):
    row = dict(row_of(rows[ranks], name))
    expected = local_row(local, name)
    branches = [row["branches"][kind] for kind in BRANCH_SUMS]
    torch.testing.assert_close(
        torch.tensor(branches), torch.tensor(expected.pop("branches")), rtol=1e-5, atol=1e-6
    )
    if not CASES[name]["entropy"]:
        assert row["entropy"] is None
        del expected["entropy"]
    assert {key: row[key] for key in expected} == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert 0 < row["capped_share"] < 1
    assert (row["responses"], row["tokens"]) == (ROWS, int(local.mask_BT.sum()))


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_logged_update_has_the_gradient_norm_and_the_kl_from_the_reference(local, rows, ranks):
    row = row_of(rows[ranks], "step")
    gradient = local.gradient("grpo").values()
    expected = torch.cat([tensor.flatten() for tensor in gradient]).norm().item()
    assert row["grad_norm"] == pytest.approx(expected, rel=1e-4)
    log_prob_BT = local.log_ratio_BT + local.batch["old_log_prob_BT"]
    weight_B = local.weights("token-mean")
    kl = objectives.kl_loss(log_prob_BT, local.batch["reference_BT"], local.mask_BT, weight_B)
    assert row["reference_kl"] == pytest.approx(kl.item(), rel=1e-5)
    assert row["update_seconds"] > 0


@pytest.mark.parametrize("ranks", [1, 2])
def test_every_update_with_our_losses_is_logged_once(rows, ranks):
    ours = [name for name in NAMES if name not in FAILING | {"verl"}]
    assert len(rows[ranks]) == len(ours)
    assert [row_of(rows[ranks], name)["responses"] for name in ours] == [ROWS] * len(ours)
    assert row_of(rows[ranks], "next")["reference_kl"] is None
    ended = [row["ended"] for row in rows[ranks].values()]
    assert ended == sorted(ended)
