"""System calls that no program of a contest needs, refused by the kernel.

They make memory that counts for no process, look into other processes, open sockets (whose kinds
are not all confined to a network namespace), make namespaces, take the processor from the process
that watches over them, or are known for flaws of the kernel.
"""

import ctypes
import errno
import os

from respo.rewards.code.inside.system import forbid_privileges, prctl

# Numbers on x86_64 and on aarch64.
_CALLS = {
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
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
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
}
_PRLIMIT = (302, 261)  # what `setrlimit` of the C library calls, with process 0 for itself
_CLONE, _CLONE3 = (56, 220), (435, 435)
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  # column, audit number
_X32 = 0x40000000  # a second set of numbers on x86_64
_NEW_NAMESPACES = 0x7E020080

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
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
        *_refuse(_EQUAL, _CLONE3[column], errno.ENOSYS),
    ]
    for numbers in _CALLS.values():
        lines += _refuse(_EQUAL, numbers[column], errno.EPERM)
    lines += [
        (_EQUAL, 0, 4, _PRLIMIT[column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_EQUAL, 1, 0, 0),
        (_RETURN, 0, 0, _REFUSE | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
        (_EQUAL, 1, 0, _CLONE[column]),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        *_refuse(_ANY_BIT, _NEW_NAMESPACES, errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    instructions = (_Instruction * len(lines))(*(_Instruction(*line) for line in lines))
    program = _Filter(len(lines), instructions)
    forbid_privileges()  # or the kernel takes no filter
    prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program))


def _refuse(test: int, operand: int, error: int) -> list[tuple[int, int, int, int]]:
    return [(test, 0, 1, operand), (_RETURN, 0, 0, _REFUSE | error)]
