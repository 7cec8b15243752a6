"""Coefficient, loss and backward pass of every method, against verl's losses.

All run in one process, in turns, on one thread, on the same float32 tensors: responses from a
quarter of the width to all of it, some log-ratios beyond every clip. Where verl has the same
objective (cispo, dppo-tv, gspo, sapo, and grpo as `vanilla`) its loss is the peer. The others
stand against `vanilla` too, PPO's clip, which is another formula: a measure of what a loss in verl
costs. Memory is the most that is allocated beyond the inputs at any moment, from torch's
profiler. verl's losses also compute a clip fraction and an estimate of the KL divergence; ours
leave the diagnostics to functions of their own, which the rows `with diagnostics` include.
"""

import functools
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler's own messages

import torch
import yaml
from torch.profiler import ProfilerActivity, profile

from benchmarks.race import Row, compare, main, race, timed
from respo.objectives import (
    branch_sums,
    coefficient_sums,
    coefficients,
    policy_loss,
    token_weights,
)

SHAPES = ((64, 4096), (8, 16384))
ROUNDS = 5
# verl's losses by our objectives; all others race with `vanilla`.
PEERS = {name: name for name in ("cispo", "dppo_tv", "gspo", "sapo")}
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


def run_verl(batch: Batch, name: str) -> None:
    from verl.trainer.ppo.core_algos import get_policy_loss_fn

    loss, _ = get_policy_loss_fn(name)(
        old_log_prob=batch.old_BT,
        log_prob=batch.log_prob_BT,
        advantages=batch.advantage_BT,
        response_mask=batch.mask_BT,
        loss_agg_mode="token-mean",
        config=verl_config(),
    )
    loss.backward()


@functools.cache
def verl_config() -> object:
    from verl.workers.config import FSDPActorConfig

    return FSDPActorConfig(strategy="fsdp", rollout_n=1, ppo_micro_batch_size_per_gpu=1)


def ours(batch: Batch) -> dict[str, tuple[str, Callable[[], None]]]:
    """Return verl's peer and the run of every method; those that share a formula are one."""
    methods = {path.stem: yaml.safe_load(path.read_text()) for path in METHODS.glob("*.yaml")}
    runs, seen = {}, set()
    # The method that is called like its objective first.
    for name in sorted(methods, key=lambda n: (n.replace("-", "_") != methods[n]["objective"], n)):
        objective, parameters = methods[name]["objective"], methods[name].get("parameters", {})
        # A dual clip is one more operation; other values of the same parameters are not.
        formula = (objective, parameters.get("dual_clip") is None)
        if formula not in seen:
            seen.add(formula)
            run = functools.partial(run_ours, batch, objective, parameters)
            runs[name] = (PEERS.get(objective, "vanilla"), run)
    for name in ("grpo", "respo"):
        run = functools.partial(run_ours, batch, name, {}, diagnostics=True)
        runs[f"{name} with diagnostics"] = ("vanilla", run)
    return runs


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


def rows(quick: bool) -> Iterator[Row]:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for shape in ((4, 64),) if quick else SHAPES:
        batch = Batch(*shape)
        runs = ours(batch)
        peers = {
            f"verl {name}": functools.partial(run_verl, batch, name)
            for name in sorted({peer for peer, _ in runs.values()}, reverse=True)
        }

        def once(run: Callable[[], None], batch: Batch = batch):
            batch.log_prob_BT.grad = None
            return timed(run)

        contestants = peers | {name: run for name, (_, run) in runs.items()}
        taken = race(
            {name: functools.partial(once, run) for name, run in contestants.items()},
            2 if quick else ROUNDS,
        )
        for name, (peer, _) in runs.items():
            peer = f"verl {peer}"
            yield compare(f"{name}, {list(shape)}", "ms", taken[name], peer, taken[peer])
        memory = {name: [peak_mb(run, batch)] for name, run in contestants.items()}
        for name, (peer, _) in runs.items():
            if name in ("grpo", "gspo", "sapo", "respo", "respo with diagnostics"):
                peer = f"verl {peer}"
                yield Row(f"{name}, {list(shape)}: memory", "MB", memory[name], peer, memory[peer])


if __name__ == "__main__":
    main(rows, __doc__)
