"""The training loop and what it keeps: weights, rollout batch, metrics, counters."""

import math
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from respo.cli import UserError
from respo.config.schema import RunConfig
from respo.policy import Policy, policy_hash, save_policy, text_files
from respo.training.local.device import device_name
from respo.training.local.interrupt import Interrupt
from respo.training.local.metrics import METRICS, no_branches
from respo.training.local.optimizer import AdamW
from respo.training.local.progress import Progress
from respo.training.local.prompts import Prompts
from respo.training.local.responses import Responses
from respo.training.local.rollout import Rollout, collect
from respo.training.local.state import State, load_state, save_state
from respo.training.local.update import policy_update
from respo.training.starts import Start, this_start
from respo.weight_files import check_sums

SAVE_SECONDS = 5.0
# Whose versions a start tells.
PACKAGES = ("torch", "safetensors")
COUNTERS = ("update", "checkpoints", "seconds", "prompts", "tokens", "restarts")
OF_ROLLOUT = ("index", "prompts", "tokens", "seconds")


class Trainer:
    """Trains one run; can be killed at any moment and continues with the same result.

    Attributes:
        update: policy updates done.
        metrics: one row per update.
        branches_USKN: sums by branch of every update, see `metrics.branches`.
        checkpoints: hash of the weights by update.
        seconds: wall time of all work that the result contains, over restarts.
        prompts: prompts sampled, the position in their stream where the next rollout batch begins.
        tokens: response tokens sampled.
        restarts: how often the run was continued from a state.
        starts: the starts whose work the result contains, see `respo.training.starts`.
    """

    def __init__(
        self,
        run: Path,
        config: RunConfig,
        policy: Policy,
        prompts: Prompts,
        identity: dict[str, str],
    ) -> None:
        settings = config.training.optimizer
        self._run = run
        self._config = config
        self._training_set = prompts
        # The optimizer trains a copy: these stay the initial weights.
        self._reference = policy
        self._identity = identity
        beta1, beta2 = settings.betas
        self._optimizer = AdamW(
            policy,
            betas=(beta1, beta2),
            weight_decay=settings.weight_decay,
            clip=settings.gradient_clip,
        )
        self._rollout: Rollout | None = None
        self.update = 0
        self.metrics: list[dict[str, float]] = []
        self.branches_USKN = no_branches()
        self.checkpoints: dict[str, str] = {}
        self.seconds = 0.0
        self.prompts = 0
        self.tokens = 0
        self.restarts = 0
        self.starts: list[Start] = []

    @property
    def policy(self) -> Policy:
        """The policy as trained so far."""
        return self._optimizer.policy

    @property
    def _states(self) -> Path:
        return states(self._run)

    def train(self, interrupt: Interrupt) -> None:
        """Train to the last update, from the newest usable state on.

        Exits with 128 + signal number, having saved, if a signal comes.

        Raises:
            UserError: loss or gradient is not finite.
        """
        self._restore()
        device = device_name(str(self.policy.device))
        self.starts = [*self.starts, this_start(self.update, device, *PACKAGES)]
        training = self._config.training
        name = "/".join(self._run.resolve().parts[-4:])
        progress = Progress(name, "update", self.update, training.updates)
        saved_at = time.monotonic()

        def leave_if_asked() -> None:
            if interrupt.asked and self.update:
                self._save()
            interrupt.stop(
                f"{name}: stopped after update {self.update}/{training.updates}; the next start "
                f"continues"
            )

        while self.update < training.updates:
            score = self.step(leave_if_asked)
            checkpoint = self.update in training.checkpoints
            if checkpoint:
                self._save_checkpoint()
            if checkpoint or time.monotonic() - saved_at > SAVE_SECONDS:
                self._save()
                saved_at = time.monotonic()
            progress.tell(self.update, f"mean reward {score:+.2f}")
            if self.update < training.updates:
                leave_if_asked()

    def step(self, between_rounds: Callable[[], None] = lambda: None) -> float:
        """Do one update, with the rollout batch before it if it is the first of N.

        ``between_rounds`` is called before each further round of dynamic sampling; it may raise.
        """
        start = time.perf_counter()
        config = self._config
        index, position = divmod(self.update, config.staleness)
        try:
            rollout = self._rollout_batch(index, between_rounds)
            size = config.training.mini_batch * config.training.rollouts_per_prompt
            responses = rollout.mini_batch(position, size)
            update_start = time.perf_counter()
            updated = policy_update(
                self._optimizer,
                responses,
                config,
                self.update + 1,
                on_policy=position == 0,
                reference=self._reference,
            )
        except UserError as error:
            raise UserError(f"{self._run}: {error}") from None
        now = time.perf_counter()
        seconds = now - update_start + rollout.seconds / config.staleness
        self.seconds += now - start
        self.update += 1
        self.metrics.append(
            {
                **updated.metrics,
                "update": float(self.update),
                "rollout_batch": float(index),
                "dropped_groups": self._dropped_groups(rollout),
                "tokens_per_second": int(responses.response_length_B.sum()) / seconds,
                "seconds": seconds,
            }
        )
        self.branches_USKN = torch.cat([self.branches_USKN, updated.branches.unsqueeze(0)])
        return updated.metrics["score"]

    def _rollout_batch(self, index: int, between_rounds: Callable[[], None]) -> Rollout:
        """Return a rollout batch, sampled now unless it is the current one."""
        if self._rollout is None or self._rollout.index != index:
            self._rollout = collect(
                self.policy,
                self._training_set,
                self._config,
                index,
                self.prompts,
                between_rounds,
            )
            self.prompts += self._rollout.prompts
            self.tokens += self._rollout.tokens
        return self._rollout

    def _dropped_groups(self, rollout: Rollout) -> float:
        if not self._config.training.dynamic_sampling:
            return math.nan
        return 1 - self._config.staleness * self._config.training.mini_batch / rollout.prompts

    def _save_checkpoint(self) -> None:
        folder = self._run / "checkpoints" / str(self.update)
        save_policy(self.policy, folder)
        self.checkpoints[str(self.update)] = policy_hash(folder)

    def _save(self) -> None:
        rows = [[row[name] for name in METRICS] for row in self.metrics]
        tensors: dict[str, Tensor] = {
            **{f"optimizer.{name}": t for name, t in self._optimizer.tensors().items()},
            "metrics": torch.tensor(rows, dtype=torch.float64),
            "branches": self.branches_USKN,
        }
        values: dict[str, Any] = {name: getattr(self, name) for name in COUNTERS}
        values["starts"] = self.starts
        # A rollout batch that is used up is not needed again.
        if self._rollout is not None and self.update % self._config.staleness:
            tensors |= {f"rollout.{n}": t for n, t in self._rollout.responses.tensors().items()}
            values |= {"rollout": {name: getattr(self._rollout, name) for name in OF_ROLLOUT}}
        save_state(self._states, self.update, self._identity, State(tensors, values))

    def _restore(self) -> None:
        """Take over the newest usable state, or clear away what an earlier training left."""
        # The lock admits one trainer: what is half-written was left behind by a killed one.
        for left_over in [*self._run.glob(".*.part"), *self._run.glob("checkpoints/.*.part")]:
            shutil.rmtree(left_over) if left_over.is_dir() else left_over.unlink()
        state = load_state(self._states, self._identity, COUNTERS)
        if state is None or not self._checkpoints_intact(state.values["checkpoints"]):
            shutil.rmtree(self._run / "checkpoints", ignore_errors=True)
            return
        values = state.values
        self.update = values["update"]
        self.checkpoints = values["checkpoints"]
        self.seconds = values["seconds"]
        self.prompts = values["prompts"]
        self.tokens = values["tokens"]
        self.restarts = values["restarts"] + 1
        self.starts = values.get("starts", [])
        self._optimizer.restore(_with_prefix(state.tensors, "optimizer."))
        self.metrics = [
            dict(zip(METRICS, row, strict=True)) for row in state.tensors["metrics"].tolist()
        ]
        self.branches_USKN = state.tensors["branches"]
        if "rollout" in values:
            tensors = {
                name: tensor.to(self.policy.device)
                for name, tensor in _with_prefix(state.tensors, "rollout.").items()
            }
            self._rollout = Rollout(**values["rollout"], responses=Responses(**tensors))
        print(f"{self._run}: continues after update {self.update}", file=sys.stderr)

    def _checkpoints_intact(self, checkpoints: dict[str, str]) -> bool:
        folder = self._run / "checkpoints"
        broken = [
            update
            for update, sha256 in checkpoints.items()
            if not is_intact(folder / update, sha256, self.policy)
        ]
        if broken:
            print(
                f"{folder / broken[0]}: the checkpoint is missing or was changed; training starts "
                f"anew",
                file=sys.stderr,
            )
        return not broken


def states(run: Path) -> Path:
    """Folder of the trainer states of a run; to be removed when the run is complete."""
    return run / "checkpoints" / "state"


def is_intact(folder: Path, sha256: str, policy: Policy) -> bool:
    """Tell whether all files of a checkpoint are there and are those that were written.

    Args:
        folder: the checkpoint.
        sha256: hash of its weights.
        policy: of the same run, at any update: only weights differ.
    """
    files = text_files(policy)
    if not all((folder / name).is_file() for name in ("model.safetensors", *files)):
        return False
    same = all((folder / name).read_bytes() == content for name, content in files.items())
    try:
        check_sums(folder, weights=True)
    except UserError:
        return False
    return same and policy_hash(folder) == sha256


def _with_prefix(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }
