"""Time and memory of coefficient, loss and backward pass of every method, against verl's losses.

verl is no dependency of the laptop study; `./run peers` installs it into `.venv`.

    OMP_NUM_THREADS=1 .venv/bin/python benchmarks/objectives.py

All run in this process, in turns, on one thread, on the same float32 tensors: [64, 4096] and
[8, 16384], responses from a quarter of the width to all of it, some log-ratios beyond every clip.
Time is processor time, the best of several rounds; memory is the most that was allocated beyond the
inputs at any moment, from torch's profiler. Ratios are against verl's `vanilla`; below 1 is less.
verl's losses also compute a clip fraction and an estimate of the KL divergence; ours leave the
diagnostics to functions of their own, which the rows `with diagnostics` include.
"""

import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler's own messages

import torch
import yaml
from machine import machine
from torch.profiler import ProfilerActivity, profile

from respo.objectives import (
    branch_sums,
    coefficient_sums,
    coefficients,
    policy_loss,
    token_weights,
)

warnings.simplefilter("ignore")
from verl.trainer.ppo.core_algos import get_policy_loss_fn  # noqa: E402
from verl.workers.config import FSDPActorConfig  # noqa: E402

SHAPES = ((64, 4096), (8, 16384))
ROUNDS = 7
PEERS = ("vanilla", "gspo", "sapo")
METHODS = Path(__file__).parents[1] / "config" / "methods"


class Batch:
    """A mini-batch of one shape."""

    def __init__(self, rows: int, width: int) -> None:
        generator = torch.Generator().manual_seed(0)
        self.old_BT = -2 * torch.rand(rows, width, generator=generator)
        noise_BT = torch.randn(rows, width, generator=generator)
        self.log_prob_BT = (self.old_BT + 0.2 * noise_BT).clamp(max=0).requires_grad_()
        self.entropy_BT = torch.rand(rows, width, generator=generator)
        length_B = torch.randint(width // 4, width + 1, (rows,), generator=generator)
        self.mask_BT = torch.arange(width) < length_B.unsqueeze(1)
        self.advantage_B = torch.randn(rows, generator=generator)
        self.advantage_BT = self.advantage_B.unsqueeze(1) * self.mask_BT
        self.tokens = int(self.mask_BT.sum())


def run_ours(
    batch: Batch, objective: str, parameters: dict[str, float | None], diagnostics: bool = False
) -> None:
    log_ratio_BT = batch.log_prob_BT.detach() - batch.old_BT
    coefficient_BT = coefficients(
        objective,
        log_ratio_BT,
        batch.advantage_B,
        batch.mask_BT,
        batch.old_BT,
        entropy_BT=batch.entropy_BT,
        **parameters,
    )
    rows, width = batch.mask_BT.shape
    weight_B = token_weights(
        "token-mean",
        batch.mask_BT,
        batch_tokens=batch.tokens,
        batch_responses=rows,
        max_response_tokens=width,
    )
    policy_loss(
        batch.log_prob_BT, coefficient_BT, batch.advantage_B, batch.mask_BT, weight_B
    ).backward()
    if diagnostics:
        coefficient_sums(coefficient_BT, batch.advantage_B, batch.mask_BT)
        branch_sums(coefficient_BT, batch.advantage_B, batch.mask_BT, log_ratio_BT)


def run_verl(batch: Batch, name: str, config: FSDPActorConfig) -> None:
    loss, _ = get_policy_loss_fn(name)(
        old_log_prob=batch.old_BT,
        log_prob=batch.log_prob_BT,
        advantages=batch.advantage_BT,
        response_mask=batch.mask_BT,
        loss_agg_mode="token-mean",
        config=config,
    )
    loss.backward()


def contestants(batch: Batch) -> dict[str, Callable[[], None]]:
    """Return every run by name, verl's first; methods that share a formula are run once."""
    config = FSDPActorConfig(strategy="fsdp", rollout_n=1, ppo_micro_batch_size_per_gpu=1)
    runs: dict[str, Callable[[], None]] = {
        f"verl {name}": lambda name=name: run_verl(batch, name, config) for name in PEERS
    }
    methods = {path.stem: yaml.safe_load(path.read_text()) for path in METHODS.glob("*.yaml")}
    seen = set()
    # The method that is called like its objective first.
    for name in sorted(methods, key=lambda n: (n.replace("-", "_") != methods[n]["objective"], n)):
        objective, parameters = methods[name]["objective"], methods[name].get("parameters", {})
        # A dual clip is one more operation; other values of the same parameters are not.
        formula = (objective, parameters.get("dual_clip") is None)
        if formula not in seen:
            seen.add(formula)
            runs[name] = lambda o=objective, p=parameters: run_ours(batch, o, p)
    for name in ("grpo", "respo"):
        runs[f"{name} with diagnostics"] = lambda o=name: run_ours(batch, o, {}, diagnostics=True)
    return runs


def processor_ms(run: Callable[[], None], batch: Batch) -> float:
    batch.log_prob_BT.grad = None
    start = time.process_time()
    run()
    return 1000 * (time.process_time() - start)


def peak_mb(run: Callable[[], None], batch: Batch) -> float:
    """Largest sum of allocations minus frees while `run` runs, MB."""
    batch.log_prob_BT.grad = None
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        run()
    live = peak = 0
    for event in profiler.profiler.kineto_results.events():
        if event.name() == "[memory]":
            live += event.nbytes()
            peak = max(peak, live)
    return peak / 1e6


def main() -> None:
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}, {machine()}")
    for rows, width in SHAPES:
        batch = Batch(rows, width)
        runs = contestants(batch)
        best = dict.fromkeys(runs, float("inf"))
        for round_ in range(ROUNDS + 1):
            for name, run in runs.items():
                taken = processor_ms(run, batch)
                if round_:  # the first warms up
                    best[name] = min(best[name], taken)
        memory = {name: peak_mb(run, batch) for name, run in runs.items()}
        time_of, memory_of = best["verl vanilla"], memory["verl vanilla"]
        print(f"\n[{rows}, {width}] float32            ms  time ratio     MB  memory ratio")
        for name in runs:
            print(
                f"{name:22s} {best[name]:9.1f} {best[name] / time_of:11.2f} {memory[name]:6.1f} "
                f"{memory[name] / memory_of:13.2f}"
            )


if __name__ == "__main__":
    main()
