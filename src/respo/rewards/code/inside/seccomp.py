"""System calls that no program of a contest needs, refused by the kernel.

They make memory that counts for no process, look into other processes, open sockets (whose kinds
are not all confined to a network namespace), make namespaces, take the processor from the process
that watches over them, use up what the host has for all processes or for all of a user, or are
known for flaws of the kernel.
"""

import ctypes
import errno
import os
import resource

from respo.rewards.code.inside.system import forbid_privileges, prctl

# Numbers on x86_64 and on aarch64; None: there is no such call.
_CALLS: dict[str, tuple[int, int | None]] = {
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "vmsplice": (278, 75),
    "splice": (275, 76),
    "tee": (276, 77),
    "process_madvise": (440, 440),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "pidfd_getfd": (438, 438),
    "socket": (41, 198),
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "mount_setattr": (442, 442),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_setup": (206, 0),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "fanotify_init": (300, 262),
    "sync": (162, 81),
    "syncfs": (306, 267),
    "open_by_handle_at": (304, 265),
    "syslog": (103, 116),
    "modify_ldt": (154, None),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
}
_CLONE3 = 435

_LOAD, _AND, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x45, 0x06
_ALL_BITS = 0xFFFFFFFF
# Of some calls what an argument says: the numbers, which argument, the bits of it that matter, and
# how they are compared with what.
_ARGUMENTS: tuple[tuple[tuple[int, int], int, int, int, int], ...] = (
    # clone: a new namespace.
    ((56, 220), 0, _ALL_BITS, _ANY_BIT, 0x7E020080),
    # prlimit, which `setrlimit` of the C library calls with process 0 for itself: another process.
    ((302, 261), 0, _ALL_BITS, _ANY_BIT, _ALL_BITS),
    # prlimit, setrlimit: core dumps, see `limits`.
    ((302, 261), 1, _ALL_BITS, _EQUAL, resource.RLIMIT_CORE),
    ((160, 164), 0, _ALL_BITS, _EQUAL, resource.RLIMIT_CORE),
    # mmap: memory that is shared and of no file, which stays when no process has it in use; huge
    # pages, which the host has set aside.
    ((9, 222), 3, 0x21, _EQUAL, 0x21),
    ((9, 222), 3, _ALL_BITS, _ANY_BIT, 0x40000),
    # madvise: memory to be swapped out.
    ((28, 233), 2, _ALL_BITS, _EQUAL, 21),
    # fcntl: larger pipes, whose sum is limited for all of a user.
    ((72, 25), 1, _ALL_BITS, _EQUAL, 1031),
)
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column, audit number
_X32 = 0x40000000  # a second set of numbers on x86_64

_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in what a filter is given

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("operand", ctypes.c_uint32),
    )


class _Filter(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction)))


def refuse_calls() -> None:
    """Refuse the calls from here on, to all that this process starts too; nothing elsewhere."""
    if os.uname().machine not in _ARCHITECTURES:
        return
    column, architecture = _ARCHITECTURES[os.uname().machine]
    lines = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _REFUSE | errno.EPERM),
        (_LOAD, 0, 0, _NUMBER),
        *_refuse(_AT_LEAST, _X32, errno.EPERM),
        # Its flags are out of a filter's sight; told that there is none, libraries take `clone`.
        *_refuse(_EQUAL, _CLONE3, errno.ENOSYS),
    ]
    for numbers in _CALLS.values():
        if (number := numbers[column]) is not None:
            lines += _refuse(_EQUAL, number, errno.EPERM)
    for call, argument, bits, test, operand in _ARGUMENTS:
        lines += [
            (_EQUAL, 0, 5, call[column]),
            (_LOAD, 0, 0, _FIRST_ARGUMENT + 8 * argument),  # its lower half
            (_AND, 0, 0, bits),
            *_refuse(test, operand, errno.EPERM),
            (_LOAD, 0, 0, _NUMBER),
        ]
    lines.append((_RETURN, 0, 0, _ALLOW))
    instructions = (_Instruction * len(lines))(*(_Instruction(*line) for line in lines))
    program = _Filter(len(lines), instructions)
    forbid_privileges()  # or the kernel takes no filter
    prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program))


def _refuse(test: int, operand: int, error: int) -> list[tuple[int, int, int, int]]:
    return [(test, 0, 1, operand), (_RETURN, 0, 0, _REFUSE | error)]
