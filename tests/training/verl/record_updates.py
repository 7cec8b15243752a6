"""Writes what verl's engine trains on at each update, and what comes out: for tests only.

VERL_USE_EXTERNAL_MODULES=...,record_updates,respo.training.verl.plugin

RUN/records has a file for each update that a trainer has made, counted from its start.
"""

import functools

import safetensors.torch
from verl.utils import tensordict_utils as tu

from respo.training.verl import engine, update_log

TENSORS = (
    "prompts",
    "responses",
    "response_mask",
    "old_log_probs",
    "rollout_log_probs",
    "advantages",
    "rm_scores",
    "routed_experts",  # with R3
)


def padded(data):
    """Tensors by name, nested ones padded on the right, each with the lengths of its rows."""
    tensors = {}
    for name in (name for name in TENSORS if name in data):
        value = tu.get(data, name)
        if value.is_nested:
            rows = value.unbind()
            tensors[f"{name}.lengths"] = value.offsets().diff()
            assert [len(row) for row in rows] == tensors[f"{name}.lengths"].tolist()
            value = value.to_padded_tensor(0)
        tensors[name] = value.contiguous().clone()
    return tensors


def recording(train_batch):
    folder = update_log.log_folder() / "records"

    @functools.wraps(train_batch)
    def record(engine, data, loss_function):
        tensors = padded(data)
        output = train_batch(engine, data, loss_function)
        made = {
            "loss": float(sum(output["loss"])),
            "grad_norm": float(output["metrics"]["grad_norm"]),
        }
        folder.mkdir(exist_ok=True)
        engine.respo_recorded = getattr(engine, "respo_recorded", 0) + 1
        safetensors.torch.save_file(
            tensors,
            folder / f"{engine.respo_recorded}.safetensors",
            {name: repr(value) for name, value in made.items()},
        )
        return output

    return record


install = engine.install


def install_and_record(settings_type):
    from verl.workers.engine.base import BaseEngine

    # Inside of our own wrap, which knows by this attribute that it is there.
    if not hasattr(BaseEngine.train_batch, "respo"):
        BaseEngine.train_batch = recording(BaseEngine.train_batch)
    install(settings_type)


engine.install = install_and_record
