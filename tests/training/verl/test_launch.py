"""The launcher with a small program in place of a trainer (STUB), which can do everything wrong."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from respo.cli import UserError
from respo.training.lock import exclusive
from respo.training.verl import cluster, owner, processes
from respo.training.verl.update_log import FILE, append

STUB = '''
import json, os, signal, sys, time

def update(first, last):
    with open(os.path.join(os.environ["RESPO_RUN_METRICS"], "updates.jsonl"), "a") as file:
        for number in range(first - 1, last):
            place = {"rollout_batch": number // 4 + 1, "mini_batch": number % 4 + 1}
            file.write(json.dumps(place) + "\\n")

def leave_a_daemon():
    """Far from this process: another session, no parent, deaf."""
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with open("daemon.part", "w") as file:
            file.write(str(os.getpid()))
        os.rename("daemon.part", "daemon")
        time.sleep(600)
    os.wait()
    while not os.path.exists("daemon"):
        time.sleep(0.01)

def save(number, frame):
    print("saved after", signal.Signals(number).name, flush=True)
    sys.exit(0)

def hang():
    time.sleep(600)

def chat():
    while True:
        print("still here", flush=True)
        time.sleep(0.1)

for step in sys.argv[1:]:
    print(step, flush=True)
    exec(step)
open("running", "w").close()
'''
READY = "open('running', 'w').close()"


@pytest.fixture
def run(tmp_path, make_config):
    """A run folder: 8 updates, N = 4."""
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(make_config().model_dump(mode="json")))
    (tmp_path / "stub.py").write_text(STUB)
    return tmp_path


class Launcher:
    """`launch` with the stub, in the run folder; the stub executes the statements `steps`."""

    def __init__(self, run, *steps, options=()):
        self.run = run
        command = [sys.executable, "-m", "respo.training.verl.launch", "--run", run, *options]
        self.process = subprocess.Popen(
            [*command, "--", sys.executable, "stub.py", *steps],
            cwd=run,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={key: value for key, value in os.environ.items() if key != "SLURM_JOB_ID"},
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def wait_for(self, name):
        """Wait until the stub has made a file; return its text."""
        until = time.monotonic() + 60
        while not (self.run / name).exists():
            assert self.process.poll() is None, self.process.stdout.read()
            assert time.monotonic() < until
            time.sleep(0.02)
        return (self.run / name).read_text()

    def end(self):
        output, _ = self.process.communicate(timeout=60)
        return self.process.returncode, output

    def guard(self):
        """The process between the launcher and the stub."""
        return processes.descendants(self.process.pid)[0]


def launch(run, *steps, options=()):
    with Launcher(run, *steps, options=options) as launcher:
        return launcher.end()


def is_gone(process, seconds=20):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with suppress(OSError):
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                time.sleep(0.05)
                continue
        return True
    return False


def test_a_run_that_reaches_its_last_update_succeeds(run):
    assert launch(run, "update(1, 8)") == (0, "update(1, 8)\n")
    assert (run / ".lock").read_text() == ""


def test_a_resumed_run_succeeds_where_its_log_ends_right(run):
    code, output = launch(run, "update(1, 6)", "sys.exit(1)")
    assert code == 1
    assert "It made 6 of 8 policy updates; the next start continues from its last" in output
    assert launch(run, "update(5, 8)")[0] == 0


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (["update(1, 3)"], "ended by itself, but not at the last update. It made 3 of 8"),
        (["sys.exit(0)"], "ended by itself, but not at the last update. It made 0 of 8"),
        (["update(1, 8)", "sys.exit(3)"], "failed with exit code 3; its output says why."),
        (["os.kill(os.getpid(), 9)"], "was killed by SIGKILL (perhaps because there was no memory"),
        (["os.kill(os.getpid(), 11)"], "was killed by SIGSEGV."),
        (["update(1, 12)"], "It made 12 of 8"),
    ],
)
def test_another_end_is_one_message(run, steps, message):
    code, output = launch(run, *steps)
    assert code == 1
    last = output.splitlines()[-1]
    assert last.startswith(f"error: {run}: the trainer ")
    assert message in last
    assert "Traceback" not in output


def test_a_command_that_is_not_there(run):
    command = [sys.executable, "-m", "respo.training.verl.launch", "--run", run]
    done = subprocess.run([*command, "--", "no-such-program"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (
        1,
        "error: cannot start no-such-program: No such file or directory\n",
    )


@pytest.mark.parametrize(
    ("step", "options", "message"),
    [
        ("hang()", ["--silent-minutes", "0.05"], "gave no sign of life for 0.05 minutes"),
        ("chat()", ["--stuck-minutes", "0.05"], "made no policy update for 0.05 minutes"),
    ],
)
def test_a_trainer_that_hangs_is_killed_and_shows_where(run, step, options, message):
    code, output = launch(run, "leave_a_daemon()", "update(1, 5)", step, options=options)
    assert code == 1
    assert message in output.splitlines()[-1]
    assert "It made 5 of 8" in output.splitlines()[-1]
    # By SIGABRT and faulthandler, or where py-spy is installed in a file.
    stacks = [path.read_text() for path in run.glob("stacks/*.txt")]
    assert any(f"in {step[:-2]}" in text or f"{step[:-2]} (" in text for text in [output, *stacks])
    assert is_gone(int((run / "daemon").read_text()))


def test_signs_of_life_keep_it_alive(run):
    waits = ["time.sleep(1)", "update(1, 4)", "time.sleep(1)", "update(5, 8)"]
    options = ["--silent-minutes", "0.1", "--stuck-minutes", "0.1"]
    assert launch(run, *waits, "time.sleep(2)", options=options)[0] == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_is_passed_on(run, number):
    name = signal.Signals(number).name
    steps = [f"signal.signal(signal.{name}, save)", "leave_a_daemon()", "update(1, 2)"]
    with Launcher(run, *steps, READY, "hang()") as launcher:
        launcher.wait_for("running")
        launcher.process.send_signal(number)
        code, output = launcher.end()
    assert code == 128 + number
    assert f"saved after {name}" in output
    assert output.endswith(
        f"{run}: stopped. It made 2 of 8 policy updates; the next start continues from its last "
        "checkpoint.\n"
    )
    assert is_gone(int((run / "daemon").read_text()))


def test_who_ignores_the_signal_is_killed(run):
    steps = ["signal.signal(signal.SIGTERM, signal.SIG_IGN)", READY, "hang()"]
    with Launcher(run, *steps, options=["--grace-seconds", "0.3"]) as launcher:
        launcher.wait_for("running")
        launcher.process.terminate()
        code, output = launcher.end()
    assert code == 128 + signal.SIGTERM
    assert "did not end within 0.3 seconds and is killed" in output


def test_a_daemon_does_not_outlive_a_good_end(run):
    assert launch(run, "leave_a_daemon()", "update(1, 8)")[0] == 0
    assert is_gone(int((run / "daemon").read_text()), seconds=0.1)


def test_the_launchers_own_death_leaves_nothing(run):
    steps = ["leave_a_daemon()", "signal.signal(signal.SIGTERM, signal.SIG_IGN)", READY, "hang()"]
    with Launcher(run, *steps, options=["--grace-seconds", "0.3"]) as launcher:
        launcher.wait_for("running")
        started = processes.descendants(launcher.process.pid)
        assert int((run / "daemon").read_text()) in started
        launcher.process.kill()
        assert all(is_gone(process) for process in started)
    # The lock of the killed one does not stand in the way, its words notwithstanding.
    assert (run / ".lock").read_text() != ""
    assert launch(run, "update(1, 8)")[0] == 0


def test_the_guards_death_leaves_nothing(run):
    with Launcher(run, "leave_a_daemon()", READY, "hang()") as launcher:
        launcher.wait_for("running")
        os.kill(launcher.guard(), signal.SIGKILL)
        code, output = launcher.end()
    assert code == 1
    assert "error: the launcher was killed by SIGKILL, and what it had started was ended" in output
    assert is_gone(int((run / "daemon").read_text()), seconds=0.1)


def test_a_second_trainer_is_refused(run):
    with Launcher(run, READY, "hang()") as launcher:
        launcher.wait_for("running")
        code, output = launch(run, "update(1, 8)")
        holder = f"process {launcher.process.pid} on {socket.gethostname()}"
    assert (code, output) == (
        1,
        f"error: {run}: is being trained by {holder}; wait for it or stop it\n",
    )
    assert not (run / FILE).exists()


def test_a_trainer_on_another_machine_is_left_alone(run):
    # Its heartbeat is fresh, and nobody can be asked whether it lives.
    (run / ".lock").write_text("process 12 on elsewhere\n")
    code, output = launch(run, "update(1, 8)")
    assert code == 1
    assert "is being trained by process 12 on elsewhere. If that is gone, wait 5 minutes" in output
    assert not (run / FILE).exists()


def test_the_local_trainers_lock_is_the_same(run):
    with exclusive(run / ".lock", print, print):
        code, output = launch(run, "update(1, 8)")
    assert code == 1
    assert f"is being trained by process {os.getpid()} on " in output


def fake(folder, name, text, code=0):
    """A program that stands for one of Slurm's; it writes its arguments down."""
    path = folder / "bin" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\necho "$@" >>{folder / name}.calls\n{text}\nexit {code}\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    return lambda name, text="", code=0: fake(tmp_path, name, text, code)


def aged(lock, seconds):
    lock.write_text("")
    os.utime(lock, (time.time() - seconds, time.time() - seconds))
    return lock


FRESH, OLD = 10, 1000
INVALID = "echo slurm_load_jobs error: Invalid job id specified >&2"


@pytest.mark.parametrize(
    ("holder", "squeue", "age", "lives"),
    [
        (f"process 12 on {socket.gethostname()}", ("", 0), FRESH, False),
        (f"process 12 on {socket.gethostname()}, Slurm job 5", ("echo RUNNING", 0), FRESH, False),
        ("process 12 on elsewhere, Slurm job 5", ("echo RUNNING", 0), OLD, True),
        ("process 12 on elsewhere, Slurm job 5", ("", 0), FRESH, False),
        ("process 12 on elsewhere, Slurm job 5", (INVALID, 1), FRESH, False),
        ("process 12 on elsewhere, Slurm job 5", ("", 1), FRESH, True),
        ("process 12 on elsewhere, Slurm job 5", ("", 1), OLD, False),
        ("process 12 on elsewhere, Slurm job 9", ("echo RUNNING", 0), FRESH, False),
        ("process 12 on elsewhere", ("", 0), FRESH, True),
        ("process 12 on elsewhere", ("", 0), OLD, False),
        ("whatever", ("", 0), FRESH, False),
    ],
)
def test_whether_a_locks_holder_is_gone(tmp_path, slurm, monkeypatch, holder, squeue, age, lives):
    monkeypatch.setenv("SLURM_JOB_ID", "9")
    slurm("squeue", *squeue)
    lock = aged(tmp_path / ".lock", age)
    if lives:
        with pytest.raises(UserError, match=r"trained by process 12 on elsewhere.*wait 5 minutes"):
            owner.check_gone(lock, holder)
    else:
        owner.check_gone(lock, holder)


def test_one_node_runs_the_command_itself():
    assert cluster.across_nodes(["train", "it"], 1) == ["train", "it"]


def test_several_nodes_run_ray_on_each(tmp_path, slurm, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "3007")
    slurm("squeue", "echo 'gpu[3-4]'")
    slurm("scontrol", "printf 'gpu3\\ngpu4\\n'")
    words = cluster.across_nodes(["train", "it"], 2)
    assert words[:3] == ["env", "RAY_SYMMETRIC_RUN_CLUSTER_WAIT_TIMEOUT=600", "srun"]
    assert " ".join(words[3:]) == (
        "--overlap --nodes=2 --ntasks=2 --ntasks-per-node=1 --cpu-bind=none --kill-on-bad-exit=1 "
        f"{Path(sys.executable).with_name('ray')} symmetric-run "
        "--address gpu3:6386 --min-nodes 2 -- train it"
    )
    assert "3007" in (tmp_path / "squeue.calls").read_text()
    assert (tmp_path / "scontrol.calls").read_text() == "show hostnames gpu[3-4]\n"
    with pytest.raises(UserError, match="--nodes 4: Slurm job 3007 has 2: gpu3 gpu4"):
        cluster.across_nodes(["train"], 4)


def test_several_nodes_need_a_job_that_slurm_knows(slurm, monkeypatch):
    with pytest.raises(UserError, match="--nodes 2 needs a Slurm job; SLURM_JOB_ID is not set"):
        cluster.across_nodes(["train"], 2)
    monkeypatch.setenv("SLURM_JOB_ID", "5")
    slurm("squeue", INVALID, 1)
    with pytest.raises(UserError, match=r"cannot ask Slurm for the nodes.*Invalid job id"):
        cluster.across_nodes(["train"], 2)


def test_stacks_are_files_where_they_can_be_had(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "_spy", lambda process: f"stack of {process}")
    assert processes.dump_stacks([os.getpid()], tmp_path / "stacks") == [
        tmp_path / "stacks" / f"{os.getpid()}.txt"
    ]
    assert (tmp_path / "stacks" / f"{os.getpid()}.txt").read_text() == f"stack of {os.getpid()}"


def test_a_log_with_gaps_is_told_of(run):
    append(run, {"rollout_batch": 2, "mini_batch": 1})
    code, output = launch(run, "update(6, 8)")
    assert code == 1
    assert f"error: {run / FILE}: update 1 is missing before line 1" in output
    assert json.loads((run / FILE).read_text().splitlines()[0]) == {
        "rollout_batch": 2,
        "mini_batch": 1,
    }
