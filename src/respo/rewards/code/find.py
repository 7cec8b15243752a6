"""Which sandbox this system has."""

import threading

from respo.rewards.code.inside.runner import Task
from respo.rewards.code.kinds import BUBBLEWRAP, NAMESPACES, Kind
from respo.rewards.code.process import SandboxProcess
from respo.rewards.workers import WorkerError

KINDS = (BUBBLEWRAP, NAMESPACES)

_PROBE = Task("print(int(input()) + 1)", None, 1 << 30, 1 << 20, 1 << 10, 10.0, 16)
_REMEDY = (
    "install bubblewrap 0.8 or later, or have user namespaces allowed (sysctl "
    "user.max_user_namespaces, on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0), or take "
    "the risk with --unsandboxed"
)

_lock = threading.Lock()
_found: list[Kind] = []


def find_sandbox() -> Kind:
    """Return the first kind of sandbox that runs a trivial program here; looks once per process.

    Raises:
        WorkerError: none does; the text says why not, and the remedy.
    """
    with _lock:
        if not _found:
            _found.append(_probe(KINDS))
        return _found[0]


def _probe(kinds: tuple[Kind, ...]) -> Kind:
    reasons = []
    for kind in kinds:
        reason = why_not(kind)
        if reason is None:
            return kind
        reasons.append(f"{kind.name}: {reason}")
    raise WorkerError(
        "programs that a model wrote run in a sandbox only, and none starts here "
        f"({'; '.join(reasons)}): {_REMEDY}"
    )


def why_not(kind: Kind) -> str | None:
    """Return why a kind of sandbox does not work here, or None if it does."""
    try:
        with SandboxProcess(kind.command(), _PROBE) as sandbox:
            reply = sandbox.ask("41", 30.0)
    except (WorkerError, OSError, ValueError) as error:
        return str(error)
    return None if reply == ("ok", "42\n") else f"a program in it ended with {reply.status}"
