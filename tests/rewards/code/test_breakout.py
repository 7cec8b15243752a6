"""Programs that try to break out, in each kind of sandbox. No process of them may be left."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from respo.rewards.code.kinds import Kind
from respo.rewards.code.pool import judge
from respo.rewards.code.problem import Case, Problem

REPOSITORY = Path(__file__).parents[3]

Run = Callable[..., list]

STACK = "import resource\nresource.setrlimit(resource.RLIMIT_STACK, "
# As competitors have it, for speed: an output of their own, flushed by the interpreter's end.
FAST_OUTPUT = """
import io, os, sys
class Output(io.IOBase):
    def __init__(self):
        self.parts = []
    def write(self, text):
        self.parts.append(text)
    def flush(self):
        os.write(1, "".join(self.parts).encode())
        self.parts = []
sys.stdout = Output()
print(1)
"""


@pytest.fixture(autouse=True)
def next_is_right(kind: Kind):
    """After each program, the next one is judged as ever."""
    yield
    problem = Problem(None, (Case("1", "2"), Case("2", "3")))
    assert judge(kind, problem, "print(int(input()) + 1)", 20, 512) == (True, "ok")


def attempts(*lines: str) -> str:
    """Return a program that tries each line, and prints the error that it ends with or `done`."""
    program = "import ctypes, os, resource, signal, socket, sys, time\n"
    program += "text = sys.stdin.read()\n"
    for line in lines:
        program += f"try:\n    {line}\n    print('done')\n"
        program += "except BaseException as error:\n    print(type(error).__name__)\n"
    return program


def test_what_it_sees(run: Run) -> None:
    """Its own processes, no name or variable of the host, no terminal, one idle network device."""
    [reply] = run(
        "import os, socket\n"
        "print([p for p in os.listdir('/proc') if p.isdigit()] == ['1', str(os.getpid())])\n"
        "print(os.environ.keys() <= {'PATH', 'HOME', 'LANG', 'PYTHONHASHSEED', 'PWD',\n"
        "                            'OMP_NUM_THREADS'})\n"
        "print(os.path.exists('/dev/tty'), os.path.exists('/etc/passwd'))\n"
        "print([line.split(':')[0].strip() for line in open('/proc/net/dev')][2:])\n"
        "print(sorted(os.listdir('/proc/self/fd')))\n"
        "status = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
        "print([int(status[f'Cap{kind}'], 16) for kind in ('Inh', 'Prm', 'Eff', 'Bnd', 'Amb')])\n"
        "print(int(status['NoNewPrivs']), int(status['Seccomp']))\n"
    )
    assert reply.output.splitlines() == [
        "True",
        "True",
        "False False",
        "['lo']",
        "['0', '1', '2', '3']",  # the last one lists
        "[0, 0, 0, 0, 0]",
        "1 2",
    ]


def test_network(run: Run) -> None:
    program = attempts(
        "socket.socket()",
        "socket.socket(socket.AF_UNIX)",
        "socket.create_connection(('127.0.0.1', int(text)), timeout=1)",
        "socket.getaddrinfo('example.org', 80)",
    )
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        [reply] = run(program, str(server.getsockname()[1]))
    assert reply.output.split() == ["PermissionError"] * 3 + ["gaierror"]


def test_home_and_repository(run: Run) -> None:
    paths = [str(Path.home()), str(REPOSITORY), __file__, "/home", "/var", "/etc/passwd", "/boot"]
    [reply] = run(
        "import os\n"
        "for path in map(str.strip, stdin):\n"
        "    below = [f for _, _, files in os.walk(path) for f in files]\n"
        "    print(below, os.path.isfile(path))",
        "\n".join(paths),
    )
    assert reply.output.splitlines() == ["[] False"] * len(paths)


def test_of_packages_it_sees_numpy(run: Run) -> None:
    [reply] = run(
        "import os, sys, numpy\n"
        "print(sorted(set(os.listdir('/packages')) | {'numpy.libs'}), sys.path[-1])\n"
        "x = numpy.ones((300, 300)); x @ x\n"
        "print(len(os.listdir('/proc/self/task')))\n"
        "try: open('/packages/numpy/__init__.py', 'a')\n"
        "except OSError: print('read-only')"
    )
    assert reply == ("ok", "['numpy', 'numpy.libs'] /packages\n1\nread-only\n")


def test_writing(run: Run, marker: str) -> None:
    """To /tmp only, whose links lead nowhere else."""
    [reply] = run(
        "import os\n"
        "name = '/' + input()\n"
        "folders = []\n"
        "for folder, below, _ in os.walk('/'):\n"
        "    folders.append(folder)\n"
        "    if folder.count('/') > 2 or folder == '/usr/share': below.clear()\n"
        "print('/usr/bin' in folders, '/proc/sys' in folders, '/dev' in folders)\n"
        "for folder in folders:\n"
        "    try:\n"
        "        with open(folder + name, 'w') as file: file.write('x')\n"
        "        print(folder)\n"
        "    except OSError: pass\n"
        "os.symlink('/', '/tmp/link'); os.symlink('/proc/1/root', '/tmp/root')\n"
        "for path in ('/tmp/link' + name, '/tmp/link/usr' + name, '/tmp/root' + name,\n"
        "             '/dev/null/new', '/proc/sys/kernel/hostname', '/proc/self/oom_score',\n"
        "             '/usr/bin/env'):\n"
        "    try:\n"
        "        open(path, 'a').write('x'); print(path)\n"
        "    except OSError: pass\n"
        "try: os.link('/usr/bin/env', '/tmp/env'); print('linked')\n"
        "except OSError: pass\n"
        "try: os.chmod('/usr/bin/env', 0o777); print('changed')\n"
        "except OSError: pass\n",
        marker,
    )
    assert reply == ("ok", "True True True\n/tmp\n")
    assert not any(Path(folder, marker).exists() for folder in ("/", "/tmp", "/usr", "/dev/shm"))


def test_filling_the_disk(run: Run) -> None:
    [reply] = run(
        "written = 0\n"
        "try:\n"
        "    for number in range(4):\n"
        "        with open(f'/tmp/{number}', 'wb', buffering=0) as file:\n"
        "            for _ in range(40): written += file.write(bytes(1 << 20))\n"
        "except OSError as error: print(error.strerror, written >> 20)\n"
    )
    assert reply == ("ok", "No space left on device 64\n")


def test_one_large_file(run: Run) -> None:
    [reply] = run(attempts("open('/tmp/a', 'wb').truncate((64 << 20) + 1)"))
    assert reply.output == "OSError\n"


@pytest.mark.parametrize(
    "program",
    [
        "x = bytearray(1 << 30)",
        "x = []\nwhile True: x.append(bytes(1 << 20))",
        # No process alone has too much.
        "import os, time\n"
        "for _ in range(7):\n"
        "    if not os.fork(): break\n"
        "x = b'1' * (100 << 20)\n"
        "time.sleep(5)",
        # The first thread, by which the kernel answers for a process, ends before the others.
        "import ctypes, os, threading, time\n"
        "threading.stack_size(1 << 20)\n"
        "def fill():\n"
        "    time.sleep(0.2)\n"
        "    x = b'1' * (150 << 20)\n"
        "    time.sleep(5)\n"
        "for _ in range(5):\n"
        "    if not os.fork():\n"
        "        threading.Thread(target=fill).start()\n"
        "        ctypes.CDLL(None).syscall(60 if os.uname().machine == 'x86_64' else 93, 0)\n"
        "time.sleep(5)",
        # The output is read away, on which the first process of the sandbox must not wait.
        "import os, time\n"
        "for _ in range(3):\n"
        "    if not os.fork():\n"
        "        output = os.open('/proc/self/fd/1', os.O_RDONLY)\n"
        "        while True: os.read(output, 1000)\n"
        "for _ in range(1000):\n"
        "    os.write(1, b'x')\n"
        "    time.sleep(0.001)\n"
        "for _ in range(7):\n"
        "    if not os.fork(): break\n"
        "x = b'1' * (100 << 20)\n"
        "time.sleep(5)",
    ],
)
def test_memory(run: Run, program: str) -> None:
    assert run(program) == [("memory", "")]


def test_a_flood_of_empty_files(run: Run) -> None:
    """They end the program, or it gets no more of them."""
    [reply] = run(
        "import os\n"
        "try:\n"
        "    for made in range(1_000_000):\n"
        "        os.close(os.open(f'/tmp/{made}', os.O_CREAT | os.O_WRONLY))\n"
        "except OSError: print(made < 5000)\n"
    )
    assert reply in [("memory", ""), ("ok", "True\n")]


def test_files_are_gone_with_their_test(run: Run) -> None:
    program = (
        "import os\n"
        "print(os.listdir('/tmp'))\n"
        "os.makedirs('/tmp/a/b'); open('/tmp/a/b/c', 'w'); os.symlink('/usr', '/tmp/a/d')\n"
        "os.mkfifo('/tmp/e')\n"
    )
    assert run(program, "", "", "") == [("ok", "[]\n")] * 3


def test_files_that_stay_end_the_sandbox(run: Run) -> None:
    program = "import os\nos.makedirs('/tmp/a/b'); os.chmod('/tmp/a', 0)"
    assert run(program, "", "") == [("ok", ""), ("died", "")]


def test_memory_that_counts_for_no_process(run: Run) -> None:
    """Shared memory of no file, pages in a pipe, pages of the host's store, and swapped ones."""
    calls = "ctypes.CDLL(None).syscall"
    intel = "os.uname().machine == 'x86_64'"
    [reply] = run(
        "import mmap\n"
        + attempts(
            "os.memfd_create('x')",
            "assert ctypes.CDLL(None).shmget(0, 1 << 20, 0o1600) != -1",
            "open('/dev/shm/x', 'w')",
            "open('/dev/zero')",
            "mmap.mmap(-1, 1 << 20)",
            "mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40000)",
            "mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).madvise(21)",
            f"assert {calls}(278 if {intel} else 75, 1, 0, 0, 0) != -1  # vmsplice",
            # What remains: private memory, and files to be read.
            "mmap.mmap(-1, 1 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).madvise(4)",
            "mmap.mmap(os.open('/usr/bin/env', 0), 0, access=mmap.ACCESS_READ)",
        )
    )
    assert reply.output.split() == [
        *["PermissionError", "AssertionError"],
        *["FileNotFoundError"] * 2,
        *["PermissionError"] * 3,
        *["AssertionError", "done", "done"],
    ]


def test_core_dumps(run: Run) -> None:
    """A program of the host's that takes them is started unless the limit is 1 byte."""
    [reply] = run(
        "limits = dict(line.rsplit(None, 3)[:2] for line in open('/proc/self/limits'))\n"
        "print(limits['Max core file size'])\n"
        + attempts(
            "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))",
            "assert ctypes.CDLL(None).syscall("
            "*{'x86_64': (160,), 'aarch64': (164,)}[os.uname().machine], 4, (ctypes.c_long * 2)())"
            " != -1",
        )
    )
    assert reply.output.split() == ["1", "ValueError", "AssertionError"]


def test_what_all_processes_of_the_host_share(run: Run) -> None:
    """Watches of files, sizes of pipes and signals, which are counted by user; requests to disks,
    for which there is one sum; and the log of the kernel."""
    calls = "ctypes.CDLL(None).syscall"
    intel = "os.uname().machine == 'x86_64'"
    [reply] = run(
        attempts(
            "assert ctypes.CDLL(None).inotify_init1(0) != -1",
            "import fcntl; fcntl.fcntl(os.pipe()[0], 1031, 1 << 20)",
            "assert resource.getrlimit(resource.RLIMIT_SIGPENDING)[1] > 256",
            f"assert {calls}(206 if {intel} else 0, 9, (ctypes.c_long * 1)()) != -1",
            f"assert {calls}(162 if {intel} else 81) != -1  # sync",
            "assert ctypes.CDLL(None).klogctl(3, ctypes.create_string_buffer(99), 99) != -1",
        )
    )
    errors = ["AssertionError", "PermissionError", *["AssertionError"] * 4]
    assert reply.output.split() == errors


def test_new_namespaces(run: Run) -> None:
    """Flags of a new user and a new mount namespace; `clone3`; mounts."""
    [reply] = run(
        "import ctypes, os\n"
        "c = ctypes.CDLL(None, use_errno=True)\n"
        "print(c.unshare(0x10000000), c.unshare(0x20000), c.syscall(435, 0, 0))\n"
        "print(c.syscall(56 if os.uname().machine == 'x86_64' else 220, 0x10000011, 0, 0, 0, 0))\n"
        "print(c.mount(b'tmpfs', b'/tmp', b'tmpfs', 0, None), c.chroot(b'/tmp'))\n"
    )
    assert reply.output.split() == ["-1"] * 6


@pytest.mark.parametrize(
    "program",
    [
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
        # Ended children that nobody has looked after, its own and orphans.
        "import os\n"
        "while True:\n"
        "    try:\n"
        "        if not os.fork():\n"
        "            os.fork(); os._exit(0)\n"
        "    except OSError: pass",
        "import signal\n"
        "for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:\n"
        "    signal.signal(number, signal.SIG_IGN)\n"
        "while True: pass",
        "import os, time\nos.close(1)\ntime.sleep(100)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
        "import os\nos.execv('/usr/bin/sleep', ['sleep', '100'])",
        "while True: 9**9**9",
        "input(); input()\nwhile True: pass",
    ],
)
def test_not_ending(run: Run, program: str) -> None:
    start = time.monotonic()
    [reply] = run(program, "a\nb", seconds=0.5)
    assert reply == ("timeout", "")
    assert time.monotonic() - start < 10


@pytest.mark.parametrize(
    "program",
    [
        "while True: pass",
        # No process alone uses so much: some end, some are still at it, some belong to nobody.
        "import os, time\n"
        "for _ in range(60):\n"
        "    if not os.fork():\n"
        "        if not os.fork():\n"
        "            while time.process_time() < 0.1: pass\n"
        "        os._exit(0)\n"
        "    os.wait()\n"
        "    time.sleep(0.05)",
        # The name of a process is no number in a list of numbers.
        "import ctypes\nctypes.CDLL(None).prctl(15, b'\\xff) R 1 (', 0, 0, 0)\nwhile True: pass",
    ],
)
def test_processor_time(run: Run, program: str) -> None:
    start = time.monotonic()
    assert run(program, seconds=1, wall=60) == [("timeout", "")]
    assert time.monotonic() - start < 40


def test_waiting_is_no_processor_time(run: Run) -> None:
    assert run("import time\ntime.sleep(1)\nprint(1)", seconds=0.5, wall=20) == [("ok", "1\n")]


def test_a_flood_of_threads(run: Run) -> None:
    """Their stacks may be too much first."""
    [reply] = run(
        "import threading, time\n"
        "while True:\n"
        "    try: threading.Thread(target=time.sleep, args=(100,)).start()\n"
        "    except RuntimeError: pass",
        seconds=0.5,
    )
    assert reply.status in ("timeout", "memory")


def test_the_number_of_processes_is_limited(run: Run) -> None:
    [reply] = run(
        "import os, time\n"
        "for made in range(100):\n"
        "    try:\n"
        "        if not os.fork(): time.sleep(100)\n"
        "    except OSError: break\n"
        "print(made)",
        processes=8,
    )
    assert 4 <= int(reply.output) < 8


def test_orphans_outlive_no_test(run: Run) -> None:
    """The second test sees nothing of the daemon of the first, which has kept standard output."""
    program = (
        "import os, time\n"
        "print(len([p for p in os.listdir('/proc') if p.isdigit()]))\n"
        "stdout.flush()\n"
        "if not os.fork():\n"
        "    os.setsid()\n"
        "    if not os.fork(): time.sleep(100)\n"
        "    os._exit(0)\n"
    )
    assert run(program, "", "", "") == [("ok", "2\n")] * 3


def test_killing(run: Run) -> None:
    """The first process of the sandbox is immune, and there is no other."""
    program = attempts(
        "[os.kill(os.getppid(), number) for number in (9, 15, 2, 19, 1, 14)]",
        "os.kill(-1, 9)",
        "os.kill(1, 9)",
    )
    assert [r.output.split() for r in run(program, "", "")] == [
        ["done", "ProcessLookupError", "done"]
    ] * 2


def test_killing_its_group(run: Run) -> None:
    assert run("import os\nos.killpg(0, 9)") == [("error", "")]


def test_the_first_process_is_out_of_reach(run: Run) -> None:
    program = attempts(
        "open('/proc/1/mem', 'rb')",
        "open('/proc/1/environ').read()",
        "os.listdir('/proc/1/root')",
        "open('/proc/1/fd/3', 'wb')",
        "open('/proc/1/fd/4', 'wb')",
        "assert ctypes.CDLL(None).ptrace(16, 1, 0, 0) != -1",
        "for fd in range(3, 100): os.write(fd, b'ok 1\\n1')",
        "os.write(0, b'x')",
    )
    [reply] = run(program)
    assert reply.output.split() == [
        *["PermissionError"] * 5,
        "AssertionError",
        "OSError",
        "done",  # its own input, a copy
    ]


def test_files_of_the_kernel_are_read_only(run: Run) -> None:
    [reply] = run(
        "for process in ('1', 'self'):\n"
        "    for name in ('oom_score_adj', 'autogroup', 'coredump_filter', 'comm'):\n"
        "        try: open(f'/proc/{process}/{name}', 'w'); print(process, name)\n"
        "        except OSError: pass\n"
    )
    assert reply == ("ok", "")


def test_nobody_takes_the_processor_from_the_first_process(run: Run) -> None:
    """Which would not see in time what memory is in use; nor has it any limit from others."""
    program = attempts(
        "os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0))",
        "os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))",
        "os.sched_setaffinity(1, [0])",
        "os.sched_setparam(1, os.sched_param(0))",
        "os.setpriority(os.PRIO_PROCESS, 1, 19)",
        "os.setpriority(os.PRIO_USER, 0, 19)",
        "assert ctypes.CDLL(None).syscall("
        "*{'x86_64': (314,), 'aarch64': (274,)}[os.uname().machine], 1, 0, 0) != -1",
        "resource.prlimit(1, resource.RLIMIT_CPU)",
        "resource.prlimit(1, resource.RLIMIT_NOFILE, (3, 3))",
        "resource.prlimit(0, resource.RLIMIT_NOFILE, (30, 30))",
        "resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))",
        "assert resource.getrlimit(resource.RLIMIT_NOFILE) == (20, 20)",
        "resource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    )
    [reply] = run(program)
    assert reply.output.split() == [
        *["PermissionError"] * 6,
        "AssertionError",
        *["PermissionError"] * 2,
        *["done"] * 3,
        "ValueError",
    ]


def test_memory_is_seen_behind_busy_processes(run: Run) -> None:
    program = (
        "import os\n"
        "for _ in range(11):\n"
        "    if not os.fork(): break\n"
        "x = bytearray(b'1') * (100 << 20)\n"
        "while True: pass"
    )
    assert run(program) == [("memory", "")]


def test_ruining_the_first_process_forges_nothing(kind: Kind) -> None:
    problem = Problem(None, (Case("", "right"),))
    program = (
        "import os, resource, time\n"
        "for name in range(16):\n"
        "    try: resource.prlimit(1, name, (0, 0))\n"
        "    except (OSError, ValueError): pass\n"
        "time.sleep(1.5)"
    )
    assert not judge(kind, problem, program, 3, 512)[0]


def test_the_expected_output_is_nowhere(kind: Kind) -> None:
    secret = "expected" + os.urandom(8).hex()
    program = (
        "import gc, os, sys\n"
        "found = set()\n"
        "def look(text):\n"
        "    import re\n"
        "    found.update(re.findall('expected[0-9a-f]{16}', text))\n"
        "for thing in gc.get_objects(): look(repr(thing)[:100000])\n"
        "frame = sys._getframe()\n"
        "while frame: look(repr(frame.f_locals)); frame = frame.f_back\n"
        "for name in ('cmdline', 'environ', 'mem'):\n"
        "    for process in ('1', 'self'):\n"
        "        try: look(open(f'/proc/{process}/{name}', errors='ignore').read(1 << 20))\n"
        "        except OSError: pass\n"
        "print('\\n'.join(found) or 'nothing')\n"
    )
    assert judge(kind, Problem(None, (Case("", secret),)), program, 20, 512) == (False, "ok")
    assert judge(kind, Problem(None, (Case("", "nothing"),)), program, 20, 512) == (True, "ok")


def test_output_without_end(run: Run) -> None:
    start = time.monotonic()
    assert run("while True: print('x' * 100_000)") == [("output", "")]
    assert run("import sys\nwhile True: sys.stderr.write('x' * 100_000)", seconds=0.5) == [
        ("timeout", "")
    ]
    assert time.monotonic() - start < 20


@pytest.mark.parametrize(
    ("program", "status", "output"),
    [
        ("print(1)\nraise SystemExit(3)", "ok", "1\n"),  # as LiveCodeBench has it
        ("print(1)\nsys.exit()", "ok", "1\n"),
        ("print(1)\nexit()", "ok", "1\n"),
        ("print(1)\nquit()", "ok", "1\n"),
        ("import os\nprint(1)\nos._exit(0)", "ok", ""),  # it was still in its buffer
        ("import os\nprint(1, flush=True)\nos._exit(3)", "error", "1\n"),
        ("print(1)\nraise ValueError", "error", ""),
        ("print(1)\nsys.stdout.close()", "ok", "1\n"),
        ("import os\nprint(1, flush=True)\nos.close(1)", "ok", "1\n"),
        ("import os\nprint(1)\nos.close(1)", "error", ""),
        ("import sys\nsys.setrecursionlimit(300)\ndef f(): f()\nf()", "error", ""),
        ("import ctypes\nctypes.string_at(0)", "error", ""),
        ("x = " + "(" * 100_000, "error", ""),
        ("print(", "error", ""),
        ("\x00", "error", ""),
        ("print('\\ud800')", "error", ""),
        ("import os\nos.write(1, b'\\xff')", "ok", "\ufffd"),
        ("import os\nos.abort()", "error", ""),
        ("raise MemoryError", "memory", ""),
        ("import atexit\natexit.register(print, 2)\nprint(1)", "ok", "1\n2\n"),
        ("import threading\nthreading.Thread(target=print, args=(1,)).start()", "ok", "1\n"),
        ("import subprocess\nprint(subprocess.run(['echo', '1'], stdout=-1).stdout)", "ok", None),
        # What the interpreter does at its own end.
        (FAST_OUTPUT, "ok", "1\n"),
        ("out = open(1, 'w')\nout.write('1')", "ok", "1"),
        ("import os\nout = os.fdopen(1, 'w')\nprint(1, file=out)", "ok", "1\n"),
        ("import os\nout = os.fdopen(os.dup(1), 'w')\nprint(1, file=out)", "ok", "1\n"),
        ("out = open('/dev/stdout', 'w')\nout.write('1')", "ok", "1"),
        ("import io, sys\nout = io.TextIOWrapper(sys.stdout.buffer)\nout.write('1')", "ok", "1"),
        ("import io, sys\nw = io.BufferedWriter(sys.stdout.buffer.raw)\nw.write(b'1')", "ok", "1"),
        ("class A:\n    def __del__(self): print(1)\na = A()", "ok", "1\n"),
        ("class A:\n    def flush(self): 1 / 0\nimport sys\nsys.stdout = A()", "error", None),
        (
            "import threading, time\n"
            "threading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n"
            "print(1)",
            "ok",
            "1\n",
        ),
        # Limits that programs set for themselves, and need.
        (f"{STACK}(1 << 29, -1))\nprint(1)", "ok", "1\n"),
        (f"{STACK}(resource.RLIM_INFINITY, resource.RLIM_INFINITY))\nprint(1)", "ok", "1\n"),
        (
            "import sys\nsys.setrecursionlimit(10**6)\n@cache\n"
            "def f(n): return n and 1 + f(n - 1)\nprint(f(120_000))",
            "ok",
            "120000\n",
        ),
        ("print(len(str(10**49_999)))", "ok", "50000\n"),  # as LiveCodeBench has it
        ("print(10**50_000)", "error", ""),
    ],
)
def test_ends(run: Run, program: str, status: str, output: str | None) -> None:
    [reply] = run(program)
    assert reply.status == status
    assert output is None or reply.output == output


def test_a_function_returns_an_integer_of_many_digits(run: Run) -> None:
    program = "def f(n): return 10 ** n"
    assert run(program, "5000", function="f") == [("ok", "1" + "0" * 5000)]


def test_endless_recursion_in_c(run: Run) -> None:
    program = (
        "import sys\n"
        "sys.setrecursionlimit(10**9)\n"
        "@cache\n"
        "def f(n): return 1 + f(n + 1)\n"
        "print(f(0))\n"
    )
    assert run(program)[0].status in ("error", "memory")


def test_huge_input(run: Run) -> None:
    text = "1234567\n" * (1 << 20)  # 8 MB
    assert run("import sys\nprint(len(sys.stdin.read()))", text, seconds=30) == [
        ("ok", f"{len(text)}\n")
    ]
    assert run("print(1)", text, seconds=30) == [("ok", "1\n")]
