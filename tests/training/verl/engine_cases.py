"""Gradients and metrics of verl's FSDP engine on one mini-batch; one process per rank.

    python engine_cases.py FOLDER

FOLDER holds cases.json (list of cases), model/ and batch.safetensors. Rank 0 writes for case i
gradient-WORLD_SIZE-i.safetensors, and metrics-WORLD_SIZE.json for all. The log of updates is in
log-WORLD_SIZE, where case i is the first update of step i + 1, or the next of another's step.
"""

import json
import os
import sys
from functools import partial
from pathlib import Path

import torch
import verl  # noqa: F401  loads the plugin
from hydra import compose, initialize_config_module
from omegaconf import OmegaConf
from safetensors.torch import load_file, save_file
from verl.utils import tensordict_utils as tu
from verl.utils.config import omega_conf_to_dataclass
from verl.utils.dataset.dataset_utils import DatasetPadMode
from verl.workers.config import TrainingWorkerConfig
from verl.workers.engine_workers import TrainingWorker
from verl.workers.utils.losses import ppo_loss

FOLDER = Path(sys.argv[1])
RANK, RANKS = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
LEARNING_RATE = 0.5


def configuration():
    actor = "actor_rollout_ref.actor"
    precision = [
        f"+{actor}.fsdp_config.mixed_precision.{key}=fp32"
        for key in ("param_dtype", "reduce_dtype", "buffer_dtype")
    ]
    overrides = [
        f"actor_rollout_ref.model.path={FOLDER / 'model'}",
        "+actor_rollout_ref.model.override_config.attn_implementation=sdpa",
        f"{actor}.strategy=fsdp2",
        f"{actor}.use_torch_compile=False",
        f"{actor}.fsdp_config.use_torch_compile=False",
        f"{actor}.fsdp_config.model_dtype=fp32",
        f"{actor}.ppo_micro_batch_size_per_gpu=1",
        f"{actor}.optim.optimizer=SGD",
        f"{actor}.optim.lr={LEARNING_RATE}",
        f"{actor}.optim.weight_decay=0",
        f"{actor}.optim.clip_grad=1000",
        f"~{actor}.optim.betas",
        *precision,
    ]
    with initialize_config_module("verl.trainer.config", version_base=None):
        config = compose("ppo_trainer", overrides=overrides)
    OmegaConf.resolve(config.actor_rollout_ref)
    OmegaConf.set_struct(config, False)
    return config.actor_rollout_ref


def make_worker(config, packed):
    config.model.use_remove_padding = packed
    actor, model = omega_conf_to_dataclass(config.actor), omega_conf_to_dataclass(config.model)
    actor.engine.use_dynamic_bsz = False
    worker = TrainingWorker(
        TrainingWorkerConfig(
            model_type="language_model",
            model_config=model,
            engine_config=actor.engine,
            optimizer_config=actor.optim,
            checkpoint_config=actor.checkpoint,
        )
    )
    worker.reset()
    return worker


def make_actors(config, cases):
    actors = {}
    for options in {tuple(case["options"]) for case in cases}:
        changed = OmegaConf.merge(config.actor, OmegaConf.from_dotlist(list(options)))
        actors[options] = omega_conf_to_dataclass(changed)
    return actors


def mini_batch(case, step):
    """This rank's part of the mini-batch as verl holds it: nested tensors without padding."""
    batch = load_file(FOLDER / "batch.safetensors")
    rows = range(RANK, len(batch["prompt_length_B"]), RANKS)
    prompts, responses = batch["prompt_length_B"], batch["response_length_B"]

    def nested(name, whole=False):
        width = prompts + responses if whole else responses
        return torch.nested.as_nested_tensor(
            [batch[name][row, : width[row]] for row in rows], layout=torch.jagged
        )

    def split(first, last):
        return torch.nested.as_nested_tensor(
            [batch["ids_BT"][row, first[row] : last[row]] for row in rows], layout=torch.jagged
        )

    tensors = {
        "input_ids": nested("ids_BT", whole=True),
        "position_ids": nested("position_BT", whole=True),
        "prompts": split(torch.zeros_like(prompts), prompts),
        "responses": split(prompts, prompts + responses),
        "loss_mask": nested("mask_BT"),
        "response_mask": nested("mask_BT"),
        "old_log_probs": nested("old_log_prob_BT"),
        "ref_log_prob": nested("reference_BT"),
        "advantages": nested("advantage_BT"),
        "rm_scores": nested("score_BT"),
    }
    if not case["reference"]:
        del tensors["ref_log_prob"]
    settings = {
        "global_steps": step,
        "temperature": 1.0,
        "calculate_entropy": case["entropy"],
        "global_batch_size": len(prompts),
        "micro_batch_size_per_gpu": case["micro_batch"],
        "use_dynamic_bsz": case["dynamic"],
        "max_token_len_per_gpu": 26,
        "pad_mode": DatasetPadMode.NO_PADDING,
    }
    return tu.get_tensordict(tensors, non_tensor_dict=settings)


def run(worker, actor, case, index):
    worker.set_loss_fn(partial(ppo_loss, config=actor))
    engine, gradient = worker.engine, {}

    def capture():
        for name, parameter in engine.module.named_parameters():
            gradient[name] = parameter.grad.full_tensor()
        return 0.0

    if not case["step"]:
        engine.optimizer_step = capture
    step = index + 1 if case["same_step"] is None else case["same_step"] + 1
    try:
        output = worker.train_batch(mini_batch(case, step))
    except ValueError as error:
        return {"error": str(error)}
    finally:
        engine.__dict__.pop("optimizer_step", None)
    if case["step"]:
        for name, parameter in engine.module.named_parameters():
            gradient[name] = parameter.detach().full_tensor()
    if RANK == 0:
        save_file(
            {name: tensor.contiguous() for name, tensor in gradient.items()},
            FOLDER / f"gradient-{RANKS}-{index}.safetensors",
        )
    metrics = tu.get(output, "metrics")
    merged = {}
    for name, value in metrics.items():
        if isinstance(value, list) and hasattr(value[0], "aggregate"):  # one of each rank
            merged[name] = float(type(value[0]).aggregate_dp(value))
    return merged


def main():
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo")
    cases = json.loads((FOLDER / "cases.json").read_text())
    config = configuration()
    workers = {packed: make_worker(config, packed) for packed in (False, True)}
    actors = make_actors(config, cases)
    results = [
        run(workers[case["packed"]], actors[tuple(case["options"])], case, index)
        for index, case in enumerate(cases)
    ]
    if RANK == 0:
        (FOLDER / f"metrics-{RANKS}.json").write_text(json.dumps(results))
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
