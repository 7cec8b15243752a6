import fcntl
import os
import socket
from pathlib import Path

import pytest

from respo.training.local import lock
from respo.training.local.lock import exclusive


def never(*arguments: str) -> None:
    raise AssertionError("nobody holds the lock")


def test_holder_is_named(tmp_path: Path) -> None:
    path = tmp_path / "run" / ".lock"
    for _ in range(2):  # released at the end, and the text is replaced
        with exclusive(path, never, never):
            assert path.read_text() == f"process {os.getpid()} on {socket.gethostname()}\n"


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
