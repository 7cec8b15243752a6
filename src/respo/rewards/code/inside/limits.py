"""Limits of one program."""

import resource

# The stack is for recursion in C. Programs may raise it, for the address space limits it too.
_FILES, _SIGNALS, _STACK = 64, 256, 512 << 20


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
        # Too small for a file, and the one number with which the kernel starts no program of the
        # host's that takes core dumps (core(5)); 0 would not do.
        resource.RLIMIT_CORE: 1,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_NOFILE: _FILES,
        resource.RLIMIT_SIGPENDING: _SIGNALS,
    }
    if processes is not None:
        limits[resource.RLIMIT_NPROC] = processes
    for name, value in limits.items():
        most = resource.getrlimit(name)[1]
        value = value if most == resource.RLIM_INFINITY else min(value, most)
        resource.setrlimit(name, (value, value))
    most = resource.getrlimit(resource.RLIMIT_STACK)[1]
    stack = _STACK if most == resource.RLIM_INFINITY else min(_STACK, most)
    resource.setrlimit(resource.RLIMIT_STACK, (stack, most))
