"""GPUs are dealt out by name; none are needed for that."""

import os
import subprocess
import sys

import pytest

from respo import gpus
from respo.cli import UserError

SHOW = "import os; print(os.environ.get('CUDA_VISIBLE_DEVICES'))"
HOLD = f"{SHOW}; import sys; sys.stdout.flush(); sys.stdin.read()"


class Job:
    """A command on some GPUs; it prints their names."""

    def __init__(self, folder, number, code=SHOW, visible="0,1,2,3", **environment):
        keep = {key: value for key, value in os.environ.items() if key != "SLURM_JOB_ID"}
        if visible is not None:
            keep["CUDA_VISIBLE_DEVICES"] = visible
        self.process = subprocess.Popen(
            [sys.executable, "-m", "respo.gpus", str(number), "--", sys.executable, "-c", code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=keep | {"TMPDIR": str(folder)} | environment,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def line(self):
        return self.process.stdout.readline().strip()

    def end(self):
        output, errors = self.process.communicate(timeout=30)
        return self.process.returncode, output.strip(), errors.strip()


def test_jobs_get_different_gpus(tmp_path):
    with Job(tmp_path, 2, HOLD) as first, Job(tmp_path, 1, HOLD) as second:
        names = first.line().split(",") + second.line().split(",")
        assert len(set(names)) == 3
        assert set(names) < {"0", "1", "2", "3"}


def test_a_job_waits_for_gpus_until_others_have_ended_however(tmp_path):
    with Job(tmp_path, 3, HOLD) as first:
        first.line()
        with Job(tmp_path, 2) as second:
            assert second.process.stderr.readline() == (
                "waiting until 2 of the GPUs 0,1,2,3 are free\n"
            )
            # Waiting, it holds none.
            with Job(tmp_path, 1) as third:
                assert third.end()[:2] == (0, "3")
            first.process.kill()
            assert second.end()[:2] == (0, "0,1")


def test_names_are_taken_as_they_are(tmp_path):
    with Job(tmp_path, 1, visible="MIG-GPU-5/1/0,7") as job:
        assert job.end()[:2] == (0, "MIG-GPU-5/1/0")


def test_a_name_counts_once(tmp_path):
    with Job(tmp_path, 1, HOLD, visible="0") as first:
        assert first.line() == "0"
        with Job(tmp_path, 1, visible=" 0,0 ,1") as other:
            assert other.end()[:2] == (0, "1")


@pytest.mark.parametrize("number", [-1, "x"])
def test_what_is_no_number(tmp_path, number):
    with Job(tmp_path, number) as job:
        assert job.end()[0] == 2


def test_too_many_are_refused(tmp_path):
    with Job(tmp_path, 8) as job:
        assert job.end() == (1, "", "error: 8 GPUs are needed, and there are 4: 0,1,2,3")


def test_a_command_that_is_not_there(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "respo.gpus", "0", "--", "no-such-program"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr == "error: cannot start no-such-program: No such file or directory\n"


def test_what_slurm_has_dealt_out_stays(tmp_path):
    with Job(tmp_path, 32, SLURM_JOB_ID="5") as job:
        assert job.end() == (0, "0,1,2,3", "")
    with (
        Job(tmp_path, 4, HOLD, SLURM_JOB_ID="6") as first,
        Job(tmp_path, 4, SLURM_JOB_ID="7") as second,
    ):
        assert (first.line(), second.end()[1]) == ("0,1,2,3", "0,1,2,3")


@pytest.mark.parametrize(("number", "visible"), [(1, ""), (0, "0,1")])
def test_without_gpus_nothing_is_dealt_out(tmp_path, number, visible):
    with Job(tmp_path, number, visible=visible) as job:
        assert job.end() == (0, visible, "")


def test_nvidia_smi_says_how_many_there_are(tmp_path, monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\nprintf 'GPU 0: H100\\n  MIG 1g.10gb\\nGPU 1: H100\\n'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert gpus.visible_gpus() == ["0", "1"]
    program.write_text("#!/bin/sh\nexit 9\n")
    assert gpus.visible_gpus() == []


@pytest.mark.parametrize("kind", ["link", "open", "file"])
def test_a_folder_that_somebody_else_has_prepared_is_not_used(tmp_path, kind):
    """All users can write to the folder of temporary files; the name of ours is known."""
    folder, elsewhere = tmp_path / f"respo-gpus-{os.getuid()}-all", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "turn").write_text("mine")
    match kind:
        case "link":
            folder.symlink_to(elsewhere)
        case "open":
            folder.mkdir()
            folder.chmod(0o777)
        case "file":
            folder.touch()
    with pytest.raises(UserError, match="not a folder of yours alone"):
        gpus.take(1, ["0"], folder)
    assert (elsewhere / "turn").read_text() == "mine"
