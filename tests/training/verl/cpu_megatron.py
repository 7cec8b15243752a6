"""Megatron on a CPU as verl's training engine: for tests only, beside cpu_platform.

VERL_USE_EXTERNAL_MODULES=cpu_platform,cpu_megatron,...

Megatron-core 0.16.1 names CUDA as its device, and mbridge builds models of Transformer Engine's
layers. Here the device is the CPU, and the layers are Megatron's own, with sequences packed.
"""

import re
from contextlib import nullcontext
from itertools import pairwise

import torch
from import_patches import after_import
from torch.nn.functional import scaled_dot_product_attention


class Nothing:
    """A stream or an event: whatever is called does nothing, and returns another."""

    def __init__(self, *_, **__):
        pass

    def __getattr__(self, name):
        return Nothing


def on_the_cpu(make):
    """Let a function that makes tensors make those for CUDA on the CPU."""

    def make_here(*args, device=None, **given):
        device = "cpu" if str(device).startswith("cuda") else device
        return make(*args, device=device, **given)

    return make_here


def pretend_cuda(random):
    cuda = torch.cuda
    cuda.current_device = lambda: torch.device("cpu")
    cuda.Stream = cuda.Event = Nothing
    cuda.current_stream = cuda.default_stream = Nothing
    cuda.stream = nullcontext
    cuda.synchronize = lambda *_: None
    cuda.manual_seed = torch.manual_seed
    cuda.get_rng_state = lambda *_, **__: torch.get_rng_state()
    random._get_cuda_rng_state = cuda.get_rng_state
    random._set_cuda_rng_state = lambda state, *_, **__: torch.set_rng_state(state)
    torch.Tensor.cuda = lambda self, *_, **__: self
    for name in ("tensor", "zeros", "ones", "empty", "full", "arange"):
        setattr(torch, name, on_the_cpu(getattr(torch, name)))
    # Its optimizers tell tensors apart by names like torch.cuda.FloatTensor.
    kind = torch.Tensor.type

    def cuda_type(self, *args, **given):
        found = kind(self, *args, **given)
        return found.replace("torch.", "torch.cuda.") if isinstance(found, str) else found

    torch.Tensor.type = cuda_type


def name_missing_kernel(moe_utils):
    # Only imported where Transformer Engine is installed, and asked for everywhere.
    if not hasattr(moe_utils, "te_general_gemm"):
        moe_utils.te_general_gemm = None


def move_counts(token_dispatcher):
    # They become numbers where they are moved from CUDA.
    def counts(tensor, as_numpy=False, **_):
        return tensor.numpy() if as_numpy and torch.is_tensor(tensor) else tensor

    token_dispatcher.maybe_move_tensor_to_cpu = counts


def load_states(distrib_optimizer):
    # The optimizers of Transformer Engine and Apex have a state from the start, and one count of
    # steps. torch's have neither: a saved state is to be loaded into one that is there, and each
    # parameter counts in a tensor of its own, which is not loaded.
    optimizer = distrib_optimizer.DistributedOptimizer
    sharded_state_dict, load_state_dict = optimizer.sharded_state_dict, optimizer.load_state_dict

    def state_dict(self, model_sharded_state_dict, is_loading=False, **given):
        if is_loading and not self.optimizer.state:
            self._init_optimizer_states_with_dummy_values()
        return sharded_state_dict(self, model_sharded_state_dict, is_loading, **given)

    def load(self, saved):
        load_state_dict(self, saved)
        (steps,) = {group["step"] for group in saved["optimizer"]["param_groups"]}
        for state in self.optimizer.state.values():
            state["step"] = torch.tensor(float(steps))

    optimizer.sharded_state_dict, optimizer.load_state_dict = state_dict, load


def pack_attention(dot_product_attention):
    def forward(self, query, key, value, *_, packed_seq_params, **__):
        """Attend within each of the sequences; tensors are tokens x heads x features."""
        outputs = []
        for first, last in pairwise(packed_seq_params.cu_seqlens_q.tolist()):
            parts = [each[first:last].transpose(0, 1)[None] for each in (query, key, value)]
            output = scaled_dot_product_attention(
                *parts, is_causal=True, scale=self.softmax_scale, enable_gqa=True
            )
            outputs.append(output[0].transpose(0, 1).flatten(1))
        return torch.cat(outputs)

    dot_product_attention.DotProductAttention.forward = forward


def use_own_layers(llm_bridge):
    bridge = llm_bridge.LLMBridge
    names_by_local_name = bridge._weight_name_mapping_mcore_local_to_global

    def layers(self, vp_stage=None):
        self.has_vp_stage = True
        return llm_bridge.get_gpt_decoder_block_spec(
            self.config, use_transformer_engine=False, vp_stage=vp_stage
        )

    def global_names(self, model, consider_ep=True):
        here = self.config.num_moe_experts // self.mpu.ep_size
        first = here * self.mpu.ep_rank if consider_ep else 0

        def weight_of_all(match):
            # mbridge knows the experts of a layer as one module.
            return f"experts.{match[2]}.weight{int(match[1]) + first}"

        names = names_by_local_name(self, model, consider_ep)
        one_expert = re.compile(r"experts\.local_experts\.(\d+)\.(\w+)\.weight")
        return {local: one_expert.sub(weight_of_all, name) for local, name in names.items()}

    bridge._get_transformer_layer_spec = layers
    bridge._weight_name_mapping_mcore_local_to_global = global_names
    # The layers of Transformer Engine have the norms inside.
    bridge._OTHER_MAPPING = {
        "input_layernorm": ["model.layers.{layer_number}.input_layernorm.weight"]
    }


after_import(
    {
        "megatron.core.tensor_parallel.random": pretend_cuda,
        "megatron.core.transformer.moe.moe_utils": name_missing_kernel,
        "megatron.core.transformer.moe.token_dispatcher": move_counts,
        "megatron.core.optimizer.distrib_optimizer": load_states,
        "megatron.core.transformer.dot_product_attention": pack_attention,
        "mbridge.core.llm_bridge": use_own_layers,
    }
)
