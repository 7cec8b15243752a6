"""Gradients of verl's Megatron engine on one mini-batch; one process per rank: see engine_cases.py.

    python megatron_cases.py FOLDER LAYOUT|resume

FOLDER holds cases.json, the models and batch.safetensors, here with `route_BTLK`. Of two ranks,
each has a part of the mini-batch, and with the LAYOUT `expert` half of the experts. For case i,
rank 0 writes LAYOUT/gradient-i.safetensors, under the names of the model's files, where a rank has
the whole gradient. The log of updates is in LAYOUT, too.

verl has Megatron train in bfloat16 or float16; here, to compare numbers, in float32. With `resume`
it is bfloat16: resume/weights.json has the largest differences of weights after each of two updates
that were made after two others, between an engine that made all and one that was loaded.
"""

import json
import sys
from functools import partial

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
LAYOUT = sys.argv[2]


def in_float32(check):
    def check_and_change(self):
        check(self)
        object.__setattr__(self, "dtype", "float32")

    return check_and_change


if LAYOUT != "resume":
    McoreEngineConfig.__post_init__ = in_float32(McoreEngineConfig.__post_init__)


def configuration(case):
    overrides = [
        "model_engine=megatron",
        f"actor_rollout_ref.model.path={FOLDER / case['model']}",
        f"{ACTOR}.megatron.vanilla_mbridge=True",
        f"{ACTOR}.megatron.expert_model_parallel_size={RANKS if LAYOUT == 'expert' else 1}",
        f"{ACTOR}.megatron.expert_tensor_parallel_size=1",
        # It would leave each rank a part of the gradient.
        f"{ACTOR}.megatron.use_distributed_optimizer={LAYOUT != 'data'}",
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
    worker = make_worker(config, packed=True)
    worker.set_loss_fn(partial(ppo_loss, config=omega_conf_to_dataclass(config.actor)))
    return worker


def run(case, index):
    worker = new_worker(case)
    engine = worker.engine
    step = engine.optimizer_step

    def capture_and_step():
        if RANK == 0 and LAYOUT != "expert":
            save_file(gradients(engine), FOLDER / LAYOUT / f"gradient-{index}.safetensors")
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
    folder = FOLDER / LAYOUT / "state"
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
    (FOLDER / LAYOUT / "weights.json").write_text(json.dumps(differences))


def main():
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    cases = json.loads((FOLDER / "cases.json").read_text())
    if LAYOUT == "resume":
        resume(cases[0])
    else:
        for index, case in enumerate(cases):
            run(case, index)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
