"""verl's Megatron engine against the local trainer's forward pass and loss, on one mini-batch.

A mixture of experts with its own routes, and with routes that are replayed (R3), on one rank and on
two that share the experts. (Tensor parallel ranks need a norm of Transformer Engine or Apex.)
"""

import importlib.util
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from respo.config.schema import Architecture
from respo.policy import create_policy, forward_with_routes, load_policy, save_policy
from respo.policy.checkpoint import split_experts
from respo.training.verl.update_log import FILE

pytestmark = [pytest.mark.verl, pytest.mark.filterwarnings("ignore")]
for package in ("verl", "megatron", "mbridge"):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed", allow_module_level=True)

HERE = Path(__file__).parent
ROWS, RESPONSE, VOCABULARY, EXPERTS = 8, 8, 20, 4
ARCHITECTURE = Architecture(
    model_type="qwen3_moe",
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=8,
    intermediate_size=16,
    num_experts=EXPERTS,
    num_experts_per_tok=2,
)
CLASSES = {"respo": "RespoConfig", "bapo": "BapoConfig", "entropy_adv": "EntropyAdvConfig"}


def case(objective, micro_batch, replay=False, model="model", dynamic=False):
    loss = "actor_rollout_ref.actor.policy_loss"
    return {
        "objective": objective,
        "micro_batch": micro_batch,
        "replay": replay,
        "model": model,
        "dynamic": dynamic,
        "entropy": objective == "entropy_adv",
        "reference": False,
        "dtype": "float32",
        "options": [
            f"{loss}.loss_mode=respo_{objective}",
            f"{loss}._target_=respo.training.verl.plugin.{CLASSES[objective]}",
            f"actor_rollout_ref.actor.megatron.router_replay.mode={'R3' if replay else 'disabled'}",
        ],
    }


CASES = {
    "respo-1": case("respo", 1),
    "respo-4": case("respo", 4),
    "entropy-2": case("entropy_adv", 2),
    # Two forward passes, of which both replay.
    "bapo-2-replay": case("bapo", 2, replay=True),
    "respo-4-replay": case("respo", 4, replay=True),
    "respo-dynamic-replay": case("respo", 4, replay=True, dynamic=True),
    "zero": case("respo", 2, model="zero"),
}
NAMES = list(CASES)
# Its row of the embedding is zero in the model `zero`.
ZERO = 7


def make_batch(policy):
    """Prompts of 1 to 5 tokens, responses of 1 to 8; log-ratios around 0; experts by turns."""
    generator = torch.Generator().manual_seed(0)
    prompt_B = torch.randint(1, 6, (ROWS,), generator=generator)
    response_B = torch.randint(1, RESPONSE + 1, (ROWS,), generator=generator)
    width = int((prompt_B + response_B).max())
    ids_BT = torch.randint(2, VOCABULARY, (ROWS, width), generator=generator)
    advantage_B = torch.randn(ROWS, generator=generator)
    routes_LBTK = forward_with_routes(policy, ids_BT)[1]
    return {
        "ids_BT": ids_BT,
        "position_BT": torch.arange(width).repeat(ROWS, 1),
        "prompt_length_B": prompt_B,
        "response_length_B": response_B,
        "mask_BT": (torch.arange(RESPONSE) < response_B.unsqueeze(1)).long(),
        "old_log_prob_BT": 0.4 * torch.randn(ROWS, RESPONSE, generator=generator) - 3.0,
        "reference_BT": torch.zeros(ROWS, RESPONSE),
        "advantage_BT": advantage_B.unsqueeze(1).repeat(1, RESPONSE),
        "score_BT": torch.zeros(ROWS, RESPONSE),
        # Never those that the policy would use.
        "route_BTLK": ((routes_LBTK + 1) % EXPERTS).permute(1, 2, 0, 3).contiguous(),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory, megatron_on_a_cpu):
    folder = tmp_path_factory.mktemp("verl")
    policy = create_policy(ARCHITECTURE, max_positions=64, seed=0)
    save_policy(policy, folder / "model")
    save_file(make_batch(policy), folder / "batch.safetensors")
    policy.weights["model.embed_tokens.weight"][ZERO] = 0.0
    save_policy(policy, folder / "zero")
    for each in CASES.values():
        each["options"] += megatron_on_a_cpu
    (folder / "cases.json").write_text(json.dumps(list(CASES.values())))
    processes = []
    try:
        for ranks in (1, 2):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                port = probe.getsockname()[1]
            processes += [start(folder, rank, ranks, port) for rank in range(ranks)]
        for process, log in processes:
            assert process.wait(timeout=500) == 0, log.read_text()[-4000:]
    finally:
        for process, _ in processes:
            process.kill()
            process.wait()
    return folder


def start(folder, rank, ranks, port):
    log = folder / f"output-{ranks}-{rank}"
    environment = os.environ | {
        "VERL_USE_EXTERNAL_MODULES": "cpu_platform,cpu_megatron,respo.training.verl.plugin",
        "VERL_PLATFORM": "cpu",
        "VERL_ENGINE_DEVICE": "cuda",
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
            [sys.executable, "-W", "ignore", HERE / "megatron_cases.py", folder],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    return process, log


@pytest.fixture(scope="module")
def expected(folder, local_update):
    """Return a function that gives the local gradient of a case; with other routes on demand."""
    batch = load_file(folder / "batch.safetensors")

    def gradient(name, replay=None):
        case = CASES[name]
        replay = case["replay"] if replay is None else replay
        update = local_update(
            load_policy(folder / case["model"]),
            batch["ids_BT"],
            batch["prompt_length_B"],
            batch["response_length_B"],
            batch["advantage_BT"][:, 0],
            batch["route_BTLK"] if replay else None,
        )
        return split_experts(update.gradient(case["objective"], batch["old_log_prob_BT"]))

    return gradient


def distance(first, second):
    """Of two gradients, relative to the largest number in the second."""
    assert first.keys() == second.keys()
    largest = max(tensor.abs().max() for tensor in second.values())
    return float(max((first[name] - second[name]).abs().max() for name in second) / largest)


@pytest.mark.parametrize("name", NAMES)
def test_gradient_is_that_of_the_local_trainer(folder, expected, name):
    actual = load_file(folder / f"gradient-{NAMES.index(name)}.safetensors")
    # float32: 1e-6 measured
    assert distance(actual, expected(name)) < 2e-5
    if CASES[name]["replay"]:
        assert distance(actual, expected(name, replay=False)) > 0.1


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_the_first_update_is_logged_once_with_its_gradient_norm(folder, expected, name, ranks):
    gradient = torch.cat([part.flatten() for part in expected(name).values()])
    rows = [json.loads(line) for line in (folder / f"log-{ranks}" / FILE).read_text().splitlines()]
    assert len(rows) == len(CASES)
    row = rows[NAMES.index(name)]
    assert row["grad_norm"] == pytest.approx(gradient.norm().item(), rel=1e-4)
    assert row["responses"] == ROWS


def test_a_token_of_zeros_has_most_of_the_gradient(expected):
    # Through the norm of a zero vector, at 1 / sqrt(1e-6): transformers makes the row of the
    # padding token zero, and gives it no gradient.
    embedding = expected("zero")["model.embed_tokens.weight"]
    others = torch.cat((embedding[:ZERO], embedding[ZERO + 1 :]))
    assert embedding[ZERO].norm() > 20 * others.norm()


def test_a_resumed_engine_goes_on_as_if_it_had_never_stopped(folder):
    assert json.loads((folder / "resumed.json").read_text()) == [0.0, 0.0]
