"""Saves models as verl's FSDP engine does on two ranks: `save_shards.py MODEL OUT [MODEL OUT ...]`.

Each rank is a process, without Ray and vLLM.
"""

import os
import sys

import torch
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from transformers import AutoModelForCausalLM, AutoTokenizer
from verl.utils.checkpoint.fsdp_checkpoint_manager import FSDPCheckpointManager

RANKS = 2


def save_all(rank, *paths):
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29513"}
    torch.distributed.init_process_group("gloo", rank=rank, world_size=RANKS)
    mesh = init_device_mesh("cpu", (RANKS,), mesh_dim_names=("fsdp",))
    for model_folder, out in zip(paths[::2], paths[1::2], strict=True):
        save(mesh, model_folder, out)
    torch.distributed.destroy_process_group()


def save(mesh, model_folder, out):
    model = AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32)
    for layer in model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    manager = FSDPCheckpointManager(
        model,
        torch.optim.AdamW(model.parameters()),
        processing_class=AutoTokenizer.from_pretrained(model_folder),
        checkpoint_config={"save_contents": ["model"], "load_contents": ["model"]},
    )
    manager.save_checkpoint(out, global_step=1)


if __name__ == "__main__":
    torch.multiprocessing.spawn(save_all, sys.argv[1:], nprocs=RANKS)
