"""Limits of one program."""

import resource

# The stack is the usual one several times over; a program needs it to recurse in C.
_FILES, _STACK = 64, 64 << 20


def limit(memory: int, file: int, seconds: float, processes: int | None) -> None:
    """Limit this process and, each for itself, all that it starts.

    Args:
        memory: bytes of address space.
        file: bytes of the largest file.
        seconds: processor time.
        processes: processes and threads, together; None where the kernel would count others too.
    """
    limits = {
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_FSIZE: file,
        resource.RLIMIT_CPU: int(seconds) + 1,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_NOFILE: _FILES,
        resource.RLIMIT_STACK: _STACK,
    }
    if processes is not None:
        limits[resource.RLIMIT_NPROC] = processes
    for name, value in limits.items():
        most = resource.getrlimit(name)[1]
        value = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(name, (value, value))
