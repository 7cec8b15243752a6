"""What may and what may not have become of weights in training."""

import json
from itertools import pairwise

import pytest
import safetensors.torch
import torch

from respo.cli import UserError
from respo.config.schema import Optimizer
from respo.policy import load_policy, save_policy
from respo.training.local.optimizer import AdamW
from respo.training.verl.check_weights import EMBEDDING, HEAD, adam_reach, check_trained

DOWN = "model.layers.0.mlp.down_proj.weight"
UPDATES = 20


def adam(rate=1e-3, betas=(0.9, 0.95), decay=0.1):
    return Optimizer(
        learning_rate=rate,
        warmup_updates=0,
        betas=list(betas),
        weight_decay=decay,
        gradient_clip=1e9,
    )


@pytest.mark.parametrize("betas", [(0.9, 0.95), (0.9, 0.999), (0.9, 0.9), (0.5, 0.9), (0.9, 0.81)])
def test_no_gradients_move_a_weight_farther(betas):
    # The worst gradients of the last update, by Cauchy-Schwarz: g_i ~ w_i / u_i.
    steps = 30
    age = torch.arange(steps - 1, -1, -1, dtype=torch.float64)
    gradients = (betas[0] / betas[1]) ** age
    weight = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.AdamW([weight], lr=1.0, betas=betas, eps=0.0, weight_decay=0.0)
    moved = []
    for gradient in gradients:
        before = weight.detach().clone()
        weight.grad = torch.full_like(weight, float(gradient))
        optimizer.step()
        moved.append(float((before - weight.detach()).abs()))
    reach = [adam_reach(adam(1.0, betas), count) for count in range(steps + 1)]
    limits = [after - before for before, after in pairwise(reach)]
    assert all(m <= limit * (1 + 1e-9) for m, limit in zip(moved, limits, strict=True))
    # It is reached.
    assert moved[-1] == pytest.approx(limits[-1])
    assert moved[0] == pytest.approx(1.0)


@pytest.fixture
def folders(tmp_path, make_policy):
    """Initial weights, and what 20 updates along the same random gradient make of them."""
    initial, trained = tmp_path / "initial", tmp_path / "trained"
    policy = make_policy()
    save_policy(policy, initial)
    optimizer = AdamW(policy, betas=(0.9, 0.95), weight_decay=0.1, clip=1e9)
    gradient = torch.randn_like(optimizer.vector)
    for _ in range(UPDATES):
        optimizer.step(gradient, 0.0, 1e-3)
    save_policy(optimizer.policy, trained)
    return initial, trained


def change(folder, edit):
    path = folder / "model.safetensors"
    weights = safetensors.torch.load_file(path)
    edit(weights)
    safetensors.torch.save_file(weights, path)


def test_trained_weights_pass(folders):
    initial, trained = folders
    before, after = load_policy(initial).weights, load_policy(trained).weights
    # The test means something: they have gone as far as they could.
    assert float((before[DOWN] - after[DOWN]).abs().max()) > 0.9 * UPDATES * 1e-3
    check_trained(trained, initial, adam(), UPDATES)


def test_rounded_weights_pass(folders):
    initial, trained = folders
    change(trained, lambda w: w.update({name: tensor.bfloat16() for name, tensor in w.items()}))
    check_trained(trained, initial, adam(), UPDATES)


def mix_rows(weights):
    weights[DOWN] = weights[DOWN].roll(8, dims=0).contiguous()


def swap_projections(weights):
    up, gate = (f"model.layers.0.mlp.{name}_proj.weight" for name in ("up", "gate"))
    weights[up], weights[gate] = weights[gate], weights[up]


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (mix_rows, f"tensor {DOWN} is not the trained one: .* of its weights are farther"),
        (swap_projections, "gate_proj.weight is not the trained one"),
        (lambda w: w.pop(DOWN), f"tensor {DOWN} is missing"),
        (lambda w: w.update(more=torch.ones(1)), "tensor more is not in the initial weights"),
        (lambda w: w.update({DOWN: w[DOWN][:4].clone()}), r"is \[4, 16\] instead of \[16, 16\]"),
        (lambda w: w[DOWN][3].fill_(float("nan")), f"tensor {DOWN} is not finite"),
        (lambda w: w[DOWN][8:].zero_(), f"tensor {DOWN} is not the trained one"),
        (lambda w: w.update({HEAD: w[EMBEDDING] + 1}), f"{HEAD} is not {EMBEDDING}, which it is"),
    ],
)
def test_weights_that_training_has_not_made(folders, edit, message):
    initial, trained = folders
    change(trained, edit)
    with pytest.raises(UserError, match=message):
        check_trained(trained, initial, adam(), UPDATES)


def test_a_tied_head_may_be_written_twice(folders):
    initial, trained = folders
    for folder in folders:
        change(folder, lambda w: w.update({HEAD: w[EMBEDDING].clone()}))
        check_trained(trained, initial, adam(), UPDATES)


def test_a_head_that_is_not_tied_is_a_must(folders):
    initial, trained = folders
    config = json.loads((trained / "config.json").read_text())
    (trained / "config.json").write_text(json.dumps(config | {"tie_word_embeddings": False}))
    change(initial, lambda w: w.update({HEAD: w[EMBEDDING].clone()}))
    with pytest.raises(UserError, match=f"tensor {HEAD} is missing"):
        check_trained(trained, initial, adam(), UPDATES)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_damaged_file_is_told(folders, name):
    initial, trained = folders
    (trained / name).write_bytes(b"{")
    with pytest.raises(UserError, match="cannot be read"):
        check_trained(trained, initial, adam(), UPDATES)
