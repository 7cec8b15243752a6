"""Keeps a run's checkpoints and the disk in bounds while verl trains.

Checkpoints are merged one after the other in a process of low priority, as soon as verl has saved
them. States that are not needed to continue go when their checkpoint is merged.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from respo.cli import UserError, explain
from respo.config.schema import RunConfig
from respo.training.verl import states
from respo.training.verl.merge import merged_hash
from respo.training.verl.options import Paths
from respo.training.verl.processes import die_with_parent

POLL_SECONDS = 1.0
NICE = 19


class Keeper:
    """Merges and deletes, a little at each `poll`.

    Args:
        paths: of the run.
        config: of the run.
        keep_last: states to continue from that are kept.
    """

    def __init__(self, paths: Paths, config: RunConfig, keep_last: int) -> None:
        self._paths = paths
        self._config = config
        self._keep_last = keep_last
        self._failed: set[int] = set()
        self._merging: tuple[int, subprocess.Popen] | None = None
        self._polled = -POLL_SECONDS
        self._told = ""

    def poll(self) -> None:
        """Look after the merging process, start the next, delete what is not needed."""
        now = time.monotonic()
        if now - self._polled < POLL_SECONDS:
            return
        self._polled = now
        try:
            if self._merging and self._merging[1].poll() is not None:
                self._end()
            self._delete()
            if self._merging is None and (ready := self._ready()):
                self._begin(ready[0])
        except OSError as error:  # training does not depend on it
            if explain(error) != self._told:
                self._told = explain(error)
                print(f"{self._paths.run}: {self._told}", file=sys.stderr)

    def unmerged(self) -> list[int]:
        """Return the updates whose checkpoint is yet to be merged."""
        kept = self._config.training.checkpoints
        return [update for update in kept if merged_hash(self._paths.run, update) is None]

    def check(self, update: int) -> None:
        """Refuse to go on where a checkpoint up to this update cannot be made any more.

        Raises:
            UserError: it is missing, and so is the state to make it of.
        """
        ready = self._ready()
        lost = [each for each in self.unmerged() if each <= update and each not in ready]
        if lost:
            raise UserError(
                f"{self._paths.run}: checkpoint {lost[0]} is missing, and so is the state to make "
                f"it of. Delete {self._paths.run / 'verl'} to train the run anew."
            )

    def finish(self, poll: Callable[[], None]) -> None:
        """Merge all that are left; the trainer has ended.

        Args:
            poll: called several times a second; may raise to give up.

        Raises:
            UserError: a checkpoint cannot be merged, or there is nothing to make it of.
        """
        self._drop()
        self._failed.clear()
        while left := self.unmerged():
            self.check(left[-1])
            self._begin(left[0])
            assert self._merging
            while self._merging[1].poll() is None:
                poll()
                time.sleep(POLL_SECONDS / 5)
            self._end()
            if self._failed:
                raise UserError(
                    f"{self._paths.run}: checkpoint {min(self._failed)} could not be merged, see "
                    "above. Nothing is lost; start the run again once the reason is mended. Where "
                    f"the weights themselves are wrong, delete {self._paths.run / 'verl'} to train "
                    "the run anew."
                )

    def _ready(self) -> list[int]:
        """Return the updates whose checkpoint can be merged now."""
        folder = self._paths.checkpoints
        whole = {step for step in states.steps(folder) if step <= states.latest(folder)}
        return [
            update
            for update in self.unmerged()
            if update // self._config.staleness in whole and update not in self._failed
        ]

    def _begin(self, update: int) -> None:
        parent = os.getpid()

        def prepare() -> None:
            die_with_parent(parent, signal.SIGKILL)
            os.nice(NICE)

        module = [sys.executable, "-m", "respo.training.verl.merge"]
        what = ["--run", str(self._paths.run), "--update", str(update)]
        command = [*module, *what, "--weights", str(self._paths.weights)]
        self._merging = (update, subprocess.Popen(command, preexec_fn=prepare))

    def _end(self) -> None:
        assert self._merging
        update, process = self._merging
        self._merging = None
        if process.returncode:
            self._failed.add(update)
            print(
                f"{self._paths.run}: checkpoint {update} could not be merged; its state is kept, "
                "and it is tried again at the end",
                file=sys.stderr,
            )

    def _drop(self) -> None:
        """Forget a merging process that was ended together with the trainer's."""
        if self._merging:
            self._merging[1].kill()
            self._merging[1].wait()
            self._merging = None

    def _delete(self) -> None:
        folder = self._paths.checkpoints
        wanted = {update // self._config.staleness for update in self.unmerged()}
        there, newest = states.steps(folder), states.latest(folder)
        for step in states.superfluous(there, newest, self._keep_last, wanted):
            states.delete(folder, step)
