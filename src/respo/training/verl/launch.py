"""`python -m respo.training.verl.launch --run RUN [--nodes N] -- COMMAND...`: train with verl.

Runs the command, which trains the run in the folder RUN, and sees to it that it ends in one of two
ways: the run's last policy update is reached (exit code 0), or there is one message that says why
not. If the command or one of our two processes is killed, with -9 as well, none of the
processes that it has started is left, and the next start continues from verl's last checkpoint.

- RUN/config.yaml says how many updates there are; RUN/updates.jsonl, which the training workers
  write (`respo.training.verl.update_log`), says how many were made.
- A trainer that has written neither an update nor any output for --silent-minutes, or no update for
  --stuck-minutes, hangs: its stacks are written to RUN/stacks, and it is killed.
- SIGTERM and SIGINT are passed on to the command, which has --grace-seconds to end.
- RUN/.lock refuses a second trainer of the same run, on another node too.
- With more than one node, in a Slurm job, Ray is started on all nodes of the job; the command runs
  on the first. On one node the command starts Ray itself.
"""

import argparse
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from respo.cli import UserError, command, explain
from respo.config import load_run_config
from respo.training.local.interrupt import Interrupt
from respo.training.lock import exclusive
from respo.training.verl import update_log
from respo.training.verl.cluster import across_nodes
from respo.training.verl.owner import Heartbeat, check_gone
from respo.training.verl.processes import (
    adopt,
    descendants,
    die_with_parent,
    dump_stacks,
    end_descendants,
)

POLL_SECONDS = 0.2
# Time that Ray's processes have to end after the command that started them has ended.
CLEAN_UP_SECONDS = 5.0


@dataclass(frozen=True)
class Limits:
    """How long a trainer may go without a sign of life, and how long it has to end; seconds."""

    silent: float
    stuck: float
    grace: float

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser) -> None:
        """Add an option for each."""
        for name, default in (
            ("silent-minutes", 30.0),
            ("stuck-minutes", 240.0),
            ("grace-seconds", 60.0),
        ):
            text = f"see above (default {default:g})"
            parser.add_argument(f"--{name}", type=_positive, default=default, help=text)

    @classmethod
    def of(cls, options: argparse.Namespace) -> "Limits":
        """Return what the command line says."""
        return cls(60 * options.silent_minutes, 60 * options.stuck_minutes, options.grace_seconds)


@command
def main() -> None:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(
        prog="python -m respo.training.verl.launch",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--run", type=Path, required=True, help="run folder, with config.yaml")
    parser.add_argument("--nodes", type=int, default=1, help="nodes of the Slurm job (default 1)")
    Limits.add_arguments(parser)
    parser.add_argument("command", nargs="+", help="what trains, after --")
    options = parser.parse_args()
    run: Path = options.run
    config = load_run_config(run / "config.yaml")
    with only_trainer(run):
        words = across_nodes(options.command, options.nodes)
        training = Training(
            run, config.training.updates, config.staleness, words, Limits.of(options)
        )
        code = guarded(training.run_command)
    sys.exit(code)


@contextmanager
def only_trainer(run: Path) -> Iterator[None]:
    """Hold the lock of a run.

    Raises:
        UserError: another process holds it, and may live.
    """
    lock = run / ".lock"

    def refuse(holder: str) -> None:
        raise UserError(f"{run}: is being trained by {holder}; wait for it or stop it")

    with exclusive(lock, refuse, lambda: None, lambda holder: check_gone(lock, holder)):
        yield


def guarded(work: Callable[[Interrupt], int]) -> int:
    """Call `work` in a child process, and return the exit code that it returns.

    If either process is killed, the other ends everything that `work` has started.
    """
    adopt()
    parent = os.getpid()
    signals = (signal.SIGTERM, signal.SIGINT)
    # Neither process may miss one before it knows what to do.
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            # Out of reach of Ctrl-C, which the parent passes on.
            os.setsid()
            adopt()
            interrupt = Interrupt()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
            die_with_parent(parent, signal.SIGTERM)
            code = work(interrupt)
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        except UserError as error:
            print(f"error: {error}", file=sys.stderr)
        except OSError as error:
            print(f"error: {explain(error)}", file=sys.stderr)
        except BaseException:
            traceback.print_exc()
        finally:
            end_descendants(os.getpid())
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    for number in signals:
        signal.signal(number, lambda number, frame: os.kill(child, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
    _, status = os.waitpid(child, 0)
    for number in signals:
        signal.signal(number, signal.SIG_IGN)
    end_descendants(parent)
    if os.WIFSIGNALED(status):
        raise UserError(
            f"the launcher was killed by {signal.Signals(os.WTERMSIG(status)).name}, and what it "
            "had started was ended. The next start continues from the last checkpoint."
        )
    return os.waitstatus_to_exitcode(status)


@dataclass
class Training:
    """A command that trains a run, from its start to its end.

    Attributes:
        run: the run folder.
        updates: policy updates of the whole run.
        staleness: updates per rollout batch, N.
        words: the command.
        limits: see there.
        environment: what the command has in its environment beside that of this process.
        poll: called several times a second while the command runs.
    """

    run: Path
    updates: int
    staleness: int
    words: list[str]
    limits: Limits
    environment: dict[str, str] = field(default_factory=dict)
    poll: Callable[[], None] = lambda: None
    _last_output: float = field(default_factory=time.monotonic)

    def run_command(self, interrupt: Interrupt) -> int:
        """Run the command to its end, or end it; return the exit code of this program.

        Raises:
            UserError: it failed, ended too early, or hung.
        """
        process = self._start()
        reader = threading.Thread(target=self._copy_output, args=(process,), daemon=True)
        reader.start()
        hangs = self._watch(process, interrupt)
        if hangs:
            self._raise_hang(hangs, reader)
        if interrupt.asked:
            return self._interrupt(process, interrupt, reader)
        code = process.wait()
        end_descendants(os.getpid(), CLEAN_UP_SECONDS)
        reader.join(timeout=CLEAN_UP_SECONDS)
        update = self._update()
        if code or update != self.updates:
            raise UserError(f"{self.run}: {self._ending(code)} {self._where(update)}")
        return 0

    def _start(self) -> subprocess.Popen:
        parent = os.getpid()

        def prepare() -> None:
            die_with_parent(parent, signal.SIGKILL)
            # A stack dump by SIGABRT must not fill the disk with memory images.
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

        try:
            return subprocess.Popen(
                self.words,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                preexec_fn=prepare,
                env=os.environ
                | self.environment
                | {
                    update_log.FOLDER: str(self.run.absolute()),
                    "PYTHONFAULTHANDLER": "1",
                    "PYTHONUNBUFFERED": "1",
                },
            )
        except OSError as error:
            raise UserError(f"cannot start {self.words[0]}: {error.strerror}") from None

    def _copy_output(self, process: subprocess.Popen) -> None:
        assert process.stdout is not None
        while block := os.read(process.stdout.fileno(), 1 << 16):
            self._last_output = time.monotonic()
            try:
                sys.stdout.buffer.write(block)
                sys.stdout.buffer.flush()
            except OSError:
                continue  # nobody reads any more; the trainer must not stop for that

    def _watch(self, process: subprocess.Popen, interrupt: Interrupt) -> str:
        """Wait until the command ends or is to be ended; return what is wrong if it hangs."""
        log = self.run / update_log.FILE
        beat = Heartbeat(self.run / ".lock")
        last_update = time.monotonic()
        size = _size(log)
        while process.poll() is None and not interrupt.asked:
            time.sleep(POLL_SECONDS)
            now = time.monotonic()
            beat()
            self.poll()
            if _size(log) != size:
                size, last_update = _size(log), now
            if now - max(last_update, self._last_output) > self.limits.silent:
                return f"gave no sign of life for {_minutes(self.limits.silent)}"
            if now - last_update > self.limits.stuck:
                return f"made no policy update for {_minutes(self.limits.stuck)}"
        return ""

    def _raise_hang(self, what: str, reader: threading.Thread) -> None:
        folder = self.run / "stacks"
        written = dump_stacks(descendants(os.getpid()), folder)
        end_descendants(os.getpid())
        reader.join(timeout=CLEAN_UP_SECONDS)  # the message comes after the last output
        stacks = (
            f"what its processes were doing is in {folder}"
            if written
            else ("what its processes were doing is in its output and in the logs of Ray")
        )
        where = self._where(self._update())
        raise UserError(f"{self.run}: the trainer {what} and was killed; {stacks}. {where}")

    def _interrupt(
        self, process: subprocess.Popen, interrupt: Interrupt, reader: threading.Thread
    ) -> int:
        """Pass the signal on to the command, wait for it, and exit as shells expect."""
        assert interrupt.number is not None
        process.send_signal(interrupt.number)
        try:
            process.wait(self.limits.grace)
        except subprocess.TimeoutExpired:
            print(
                f"{self.run}: the trainer did not end within {self.limits.grace:g} seconds "
                "and is killed",
                file=sys.stderr,
            )
        end_descendants(os.getpid())
        reader.join(timeout=CLEAN_UP_SECONDS)
        print(f"{self.run}: stopped. {self._where(self._update())}", file=sys.stderr)
        return 128 + interrupt.number

    def _update(self) -> int:
        """Return the last policy update that was made."""
        rows = update_log.read(self.run, self.staleness)
        return rows[-1]["update"] if rows else 0

    def _ending(self, code: int) -> str:
        if code < 0:
            name = signal.Signals(-code).name
            memory = " (perhaps because there was no memory left)" if name == "SIGKILL" else ""
            return f"the trainer was killed by {name}{memory}."
        if code:
            return f"the trainer failed with exit code {code}; its output says why."
        return "the trainer ended by itself, but not at the last update."

    def _where(self, update: int) -> str:
        return (
            f"It made {update} of {self.updates} policy updates; the next start continues from its "
            "last checkpoint."
        )


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise ValueError
    return value


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:g} minutes"


if __name__ == "__main__":
    main()
