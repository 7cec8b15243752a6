"""Gradients of verl's Megatron engine on one mini-batch; one process per rank: see engine_cases.py.

    python megatron_cases.py FOLDER

FOLDER holds cases.json, the models and batch.safetensors, here with `route_BTLK`. Of two ranks,
each has a part of the mini-batch and half of the experts. A single rank writes
gradient-i.safetensors for case i, under the names of the model's files. The log of updates is in
log-WORLD_SIZE.

verl has Megatron train in bfloat16 or float16; here, to compare numbers, in float32. But in
bfloat16 a single rank writes resumed.json: the largest difference of weights after each of two
updates that were made after two others, between an engine that made all and one that was loaded.
"""

import json
import os
from functools import partial
from unittest.mock import patch

import torch
from engine_cases import FOLDER, RANK, RANKS, make_worker, mini_batch
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf
from safetensors.torch import load_file, save_file
from verl.utils import tensordict_utils as tu
from verl.utils.config import omega_conf_to_dataclass
from verl.utils.megatron_utils import unwrap_model
from verl.workers.config import McoreEngineConfig
from verl.workers.utils.losses import ppo_loss

ACTOR = "actor_rollout_ref.actor"


def in_type_of_case(case):
    check = McoreEngineConfig.__post_init__

    def check_and_change(self):
        check(self)
        object.__setattr__(self, "dtype", case["dtype"])

    return patch.object(McoreEngineConfig, "__post_init__", check_and_change)


def configuration(case):
    overrides = [
        "model_engine=megatron",
        f"actor_rollout_ref.model.path={FOLDER / case['model']}",
        f"{ACTOR}.megatron.vanilla_mbridge=True",
        f"{ACTOR}.megatron.expert_model_parallel_size={RANKS}",
        f"{ACTOR}.megatron.expert_tensor_parallel_size=1",
        f"{ACTOR}.ppo_micro_batch_size_per_gpu=1",
        f"{ACTOR}.optim.optimizer=adam",
        f"{ACTOR}.optim.lr=1e-3",
        f"{ACTOR}.optim.clip_grad=1000",
        f"{ACTOR}.optim.total_training_steps=10",
        f"{ACTOR}.calculate_entropy={case['entropy']}",
        *case["options"],
    ]
    with initialize_config_module("verl.trainer.config", version_base=None):
        config = compose("ppo_trainer", overrides=overrides)
    OmegaConf.resolve(config.actor_rollout_ref)
    OmegaConf.set_struct(config, False)
    return config.actor_rollout_ref


def gradients(engine):
    (model,) = unwrap_model(engine.module)
    global_names = engine.bridge._weight_name_mapping_mcore_local_to_global(model)
    parts = {}
    for name, parameter in model.named_parameters():
        gradient = parameter.main_grad.clone()
        names, tensors = engine.bridge._weight_to_hf_format(global_names[name], gradient)
        parts |= zip(names, (tensor.contiguous() for tensor in tensors), strict=True)
    return parts


def new_worker(case):
    config = configuration(case)
    with in_type_of_case(case):
        worker = make_worker(config, packed=True)
        worker.set_loss_fn(partial(ppo_loss, config=omega_conf_to_dataclass(config.actor)))
    return worker


def run(case, index):
    worker = new_worker(case)
    engine = worker.engine
    step = engine.optimizer_step

    def capture_and_step():
        if RANKS == 1:
            save_file(gradients(engine), FOLDER / f"gradient-{index}.safetensors")
        return step()

    engine.optimizer_step = capture_and_step
    batch = mini_batch(case, index + 1)
    if case["replay"]:
        batch["routed_experts"] = routes()
        tu.assign_non_tensor(batch, enable_routing_replay=True)
    worker.train_batch(batch)


def routes():
    """Those of this rank's responses, as from a rollout: none of the last token."""
    batch = load_file(FOLDER / "batch.safetensors")
    lengths = (batch["prompt_length_B"] + batch["response_length_B"] - 1).tolist()
    rows = range(RANK, len(lengths), RANKS)
    return torch.nested.as_nested_tensor(
        [batch["route_BTLK"][row, : lengths[row]] for row in rows],
        layout=torch.jagged,
    )


def resume(case):
    del os.environ["RESPO_RUN_METRICS"]  # the log is of the cases
    folder = FOLDER / "state"
    worker, resumed = new_worker(case), new_worker(case)
    for step in (1, 2):
        worker.train_batch(mini_batch(case, step))
    worker.engine.save_checkpoint(str(folder), global_step=2)
    resumed.engine.load_checkpoint(str(folder))
    differences = []
    for step in (3, 4):
        weights = []
        for each in (worker, resumed):
            each.train_batch(mini_batch(case, step))
            (model,) = unwrap_model(each.engine.module)
            weights.append(torch.cat([weight.detach().flatten() for weight in model.parameters()]))
        differences.append(float((weights[0] - weights[1]).abs().max()))
    (FOLDER / "resumed.json").write_text(json.dumps(differences))


def main():
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    cases = json.loads((FOLDER / "cases.json").read_text())
    for index, case in enumerate(cases):
        run(case, index)
    if RANKS == 1:
        resume(cases[0] | {"dtype": "bfloat16"})
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
