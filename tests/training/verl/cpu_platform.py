"""A CPU as a device of verl: for tests only.

VERL_USE_EXTERNAL_MODULES=cpu_platform,... VERL_PLATFORM=cpu VERL_ENGINE_DEVICE=cuda
"""

import sys
import types
from contextlib import nullcontext

import torch
from verl.plugin.platform.platform_base import PlatformBase
from verl.plugin.platform.platform_manager import PlatformRegistry

# verl 0.9.1 wants a class of TRL, where TRL is installed, that recent ones do not have.
sys.modules["trl"] = None


class NoDevice(types.ModuleType):
    """Takes the place of torch.cuda: every other function exists and returns 0."""

    def mem_get_info(self):
        return 8 << 30, 8 << 30

    def get_device_name(self):
        return "CPU"

    def device_count(self):
        return 1

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: 0


init_process_group = torch.distributed.init_process_group


def init_one_backend(backend=None, *args, **given):
    """verl names the backend of CPUs and that of its devices, which are the same here."""
    backend = "gloo" if backend == "cpu:gloo,cpu:gloo" else backend
    return init_process_group(backend, *args, **given)


torch.distributed.init_process_group = init_one_backend


def constant(value):
    return lambda *_, **__: value


@PlatformRegistry.register(platform="cpu")
class CpuPlatform(PlatformBase):
    device_name = vendor_name = "cpu"
    device_module = NoDevice("no_device")
    is_available = constant(True)
    current_device = constant(torch.device("cpu"))
    device_count = constant(1)
    communication_backend_name = constant("gloo")
    visible_devices_envvar = constant("VISIBLE_CPUS")
    ray_resource_name = constant("GPU")
    ray_noset_envvars = constant([])
    get_device_capability = constant((None, None))
    is_ipc_supported = constant(False)
    nvtx_range = constant(nullcontext())
    set_device = synchronize = manual_seed = manual_seed_all = set_allocator_settings = constant(
        None
    )
    empty_cache = profiler_start = profiler_stop = cudart = constant(None)
