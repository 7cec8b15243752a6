import fcntl
import os
import socket
from pathlib import Path

import pytest

from respo.training import lock
from respo.training.lock import exclusive


def never(*arguments: str) -> None:
    raise AssertionError("nobody holds the lock")


@pytest.mark.parametrize("job", [None, "27"])
def test_holder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: str | None) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    expected = f"process {os.getpid()} on {socket.gethostname()}"
    if job:
        monkeypatch.setenv("SLURM_JOB_ID", job)
        expected += ", Slurm job 27"
    path = tmp_path / "run" / ".lock"
    for _ in range(2):
        with exclusive(path, never, never, never):
            assert path.read_text() == f"{expected}\n"
        assert path.read_text() == ""


def test_a_killed_holder_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    path.write_text("process 12 on somewhere\n")
    told: list[str] = []
    with exclusive(path, never, never, told.append):
        assert told == ["process 12 on somewhere"]
        assert path.read_text().startswith(f"process {os.getpid()} ")


def test_waits_for_the_holder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "POLL_SECONDS", 0.01)
    path = tmp_path / ".lock"
    path.write_text("process 12 on somewhere\n")
    events: list[str] = []
    with path.open() as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)

        def poll() -> None:
            events.append("poll")
            if len(events) == 4:
                fcntl.flock(holder, fcntl.LOCK_UN)

        with exclusive(path, events.append, poll):
            events.append("held")
    assert events == ["process 12 on somewhere", "poll", "poll", "poll", "held"]


def test_waiting_can_be_given_up(tmp_path: Path) -> None:
    path = tmp_path / ".lock"

    def give_up() -> None:
        raise SystemExit(143)

    with path.open("w") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(SystemExit), exclusive(path, lambda holder: None, give_up):
            raise AssertionError("held twice")
