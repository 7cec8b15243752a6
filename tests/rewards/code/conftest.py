import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from respo.rewards.code.find import why_not
from respo.rewards.code.inside.runner import Task
from respo.rewards.code.kinds import BUBBLEWRAP, NAMESPACES, Kind
from respo.rewards.code.process import Reply, SandboxProcess

MEMORY = 512 << 20

Run = Callable[..., list[Reply]]


@pytest.fixture(scope="session")
def marker() -> str:
    """An argument of all processes that these tests start."""
    return f"respo-sandbox-test-{os.getpid()}"


@pytest.fixture(scope="session", params=[BUBBLEWRAP, NAMESPACES], ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest, marker: str) -> Kind:
    """Each kind of sandbox that works here."""
    reason = why_not(request.param)
    if reason is not None:
        pytest.skip(f"no {request.param.name} here: {reason}")
    return Kind(request.param.name, lambda: [*request.param.command(), marker])


@pytest.fixture
def run(kind: Kind, marker: str) -> Iterator[Run]:
    """Return a function that runs a program on inputs; see to it that no process is left."""

    def run(
        program: str,
        *texts: str,
        seconds: float = 10.0,
        wall: float | None = None,
        processes: int = 16,
        function: str | None = None,
    ) -> list[Reply]:
        task = Task(program, function, MEMORY, 64 << 20, 1 << 20, seconds, processes)
        with SandboxProcess(kind.command(), task) as sandbox:
            return [sandbox.ask(text, wall or seconds) for text in texts or ("",)]

    yield run
    assert wait_for_end(marker) == []


@pytest.fixture(scope="session")
def wait_until_ended(marker: str) -> Callable[[], list[int]]:
    return lambda: wait_for_end(marker)


def wait_for_end(marker: str) -> list[int]:
    """Wait a little until all marked processes have ended; return those that have not."""
    patience = time.monotonic() + 10
    while (left := marked(marker)) and time.monotonic() < patience:
        time.sleep(0.02)
    return left


def marked(marker: str) -> list[int]:
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                if marker.encode() in (process / "cmdline").read_bytes():
                    found.append(int(process.name))
            except OSError:  # it has just ended
                pass
    return found
