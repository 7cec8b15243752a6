"""Lets vLLM on a CPU tell other experts than it has used: for tests only, after cpu_vllm.

Of 4 experts, it tells the next ones. A policy that is trained with their replay does what it would
never do by itself.
"""

from import_patches import after_import

EXPERTS = 4


def tell_the_next(cpu_moe):
    experts = cpu_moe.CPUUnquantizedExperts
    set_capture_fn = experts.set_capture_fn

    def set_false(self, capture):
        set_capture_fn(self, capture and (lambda chosen: capture((chosen + 1) % EXPERTS)))

    experts.set_capture_fn = set_false


after_import({"vllm.model_executor.layers.fused_moe.experts.cpu_moe": tell_the_next})
