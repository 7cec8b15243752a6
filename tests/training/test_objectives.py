"""Every objective trains, and each trains something else."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from respo.config.schema import RunConfig
from respo.objectives import objective_names
from respo.policy import load_policy
from respo.training.local.interrupt import Interrupt
from respo.training.local.prompts import Prompts
from respo.training.local.trainer import Trainer


class NoInterrupt(Interrupt):
    """Never asked to stop; leaves the signal handlers of the test process alone."""

    def __init__(self) -> None:
        self.number = None


@pytest.mark.parametrize("initial", [0], indirect=True, ids=["dense"])
def test_every_objective_trains_its_own_policy(
    initial: Path, prompts: Prompts, make_config: Callable[..., RunConfig], tmp_path: Path
) -> None:
    identity = {"config_sha256": "c", "data_sha256": "d", "initial_sha256": "i"}
    before = torch.cat([weight.flatten() for weight in load_policy(initial).parameters()])
    after = {}
    for name in objective_names():
        config = make_config(objective=name, updates=4, checkpoints=[4])
        trainer = Trainer(tmp_path / name, config, load_policy(initial), prompts, identity)
        trainer.train(NoInterrupt())
        after[name] = torch.cat([weight.flatten() for weight in trainer.policy.parameters()])
        assert after[name].isfinite().all()
        assert (after[name] - before).abs().max() > 1e-4
    names = list(after)
    same = [(a, b) for a in names for b in names if a < b and torch.equal(after[a], after[b])]
    assert not same
