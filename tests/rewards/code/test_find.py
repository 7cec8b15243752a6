import pytest

from respo.rewards.code import find
from respo.rewards.code.kinds import BUBBLEWRAP, NAMESPACES, UNSANDBOXED, Kind
from respo.rewards.workers import WorkerError


@pytest.fixture(autouse=True)
def nothing_found_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "_found", [])


def missing() -> list[str]:
    raise FileNotFoundError("bwrap is not installed")


MISSING = Kind("bubblewrap", missing)
REFUSED = Kind("namespaces", lambda: ["/bin/sh", "-c", "echo not permitted >&2; exit 1"])
SILENT = Kind("silent", lambda: ["/bin/false"])
WRONG = Kind("wrong", lambda: ["/bin/sh", "-c", "echo ready; read task; read text; echo error 0"])


def test_without_a_sandbox_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "KINDS", (MISSING, REFUSED, SILENT, WRONG))
    with pytest.raises(WorkerError) as error:
        find.find_sandbox()
    assert str(error.value) == (
        "programs that a model wrote run in a sandbox only, and none starts here (bubblewrap: "
        "bwrap is not installed; namespaces: not permitted; silent: exit code 1; wrong: a program "
        "in it ended with error): install bubblewrap 0.8 or later, or have user namespaces "
        "allowed (sysctl user.max_user_namespaces, on Ubuntu "
        "kernel.apparmor_restrict_unprivileged_userns=0), or take the risk with --unsandboxed"
    )


def test_the_first_that_works_is_taken_for_good(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "KINDS", (MISSING, UNSANDBOXED, REFUSED))
    assert find.find_sandbox() is UNSANDBOXED
    monkeypatch.setattr(find, "KINDS", (REFUSED,))
    assert find.find_sandbox() is UNSANDBOXED


def test_the_kinds() -> None:
    """Never none at all without being told."""
    assert find.KINDS == (BUBBLEWRAP, NAMESPACES)
