import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from respo.rewards.code import CodePool
from respo.rewards.code import pool as pool_module
from respo.rewards.code.kinds import Kind
from respo.rewards.workers import Verdict, WorkerError

LIVECODEBENCH = "testing_util.py of LiveCodeBench, read"
LENIENT = "more lenient than LiveCodeBench, see docs/sandbox.md"


def problem_of(*cases: tuple[str, str], function: str | None = None) -> str:
    tests = [{"input": given, "output": wanted} for given, wanted in cases]
    return json.dumps({"function": function, "tests": tests})


def fenced(program: str) -> str:
    return f"Here it is:\n```python\n{program}\n```"


ADD = problem_of(("1 2", "3"), ("5\n6", "11"))
TWICE = problem_of(("[1, 2]", "[2, 4]"), ("[]", "[]"), function="twice")

CASES = [
    # tests, program, correct, origin
    (ADD, "print(sum(map(int, sys.stdin.read().split())))", True, LIVECODEBENCH),
    (ADD, "print(float(sum(map(int, open(0).read().split()))))", True, LIVECODEBENCH),
    (ADD, "print(3)", False, LIVECODEBENCH),
    (ADD, "import pyarrow\nprint(3)", False, "of packages numpy only, see docs/sandbox.md"),
    (
        problem_of(("1 2\n3 4", "7 10\n15 22")),
        "import numpy as np\na = np.array([row.split() for row in stdin], dtype=int)\n"
        "for row in np.linalg.matrix_power(a, 2): print(*row)",
        True,
        "there as with LiveCodeBench",
    ),
    (
        TWICE,
        "import numpy as np\ndef twice(x): return 2 * np.array(x)",
        True,
        "a value of numpy equals the list",
    ),
    (
        problem_of(("[1, 2]", "3"), function="total"),
        "import numpy as np\ndef total(x): return np.array(x).sum()",
        True,
        "LiveCodeBench compares by ==",
    ),
    (problem_of(("3", "3"), function="same"), "def same(x): return {x}", False, "no value of JSON"),
    (
        ADD,
        "if __name__ == '__main__':\n    print(sum(map(int, stdin.read().split())))",
        True,
        "ib.",
    ),
    (
        problem_of(("", "3 4 2")),
        "print(gcd(6, 9), pow(2, 2), bisect_left([1, 2], 3))",
        True,
        LIVECODEBENCH,
    ),
    (problem_of(("", "[(1, 2)]")), "print(Counter([1, 1]).most_common(1))", True, LIVECODEBENCH),
    (
        problem_of(("", "True")),
        "@dataclass\nclass A:\n    x: 'List[int]'\nprint(A(1) == A(1))",
        False,  # the decorator is not among the names
        LIVECODEBENCH,
    ),
    (
        problem_of(("", "True")),
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    x: 'List[int]'\n"
        "print(A(1) == A(1))",
        True,
        "a program of its own",
    ),
    (
        problem_of(("", "10000")),
        "def f(n): return n and 1 + f(n - 1)\nprint(f(10000))",
        True,
        "ib.",
    ),
    # Nothing stays from one test to the next.
    (
        problem_of(("", "1"), ("", "1")),
        "x = getattr(builtins, 'x', 0) + 1\nbuiltins.x = x\nprint(x)",
        True,
        "a process of its own",
    ),
    (TWICE, "def twice(x): return [2 * y for y in x]", True, LIVECODEBENCH),
    (
        TWICE,
        "class Solution:\n    def twice(self, x: List[int]) -> List[int]:\n"
        "        print('noise')\n        return [2 * y for y in x]",
        True,
        LIVECODEBENCH,
    ),
    (TWICE, "def twice(x): return tuple(2 * y for y in x)", True, LIVECODEBENCH),
    (TWICE, "def twice(x): return x + x", False, LIVECODEBENCH),
    (TWICE, "def other(x): return x", False, LIVECODEBENCH),
    (TWICE, "def twice(x): return {2 * y for y in x}", False, LIVECODEBENCH),
    (TWICE, "def twice(x): raise ValueError", False, LIVECODEBENCH),
    (TWICE, "def twice(x, y): return x", False, LIVECODEBENCH),
    (
        TWICE,
        "def twice(x): return [2 * y for y in x]\nif __name__ == '__main__': input()",
        True,
        LIVECODEBENCH,
    ),
    (
        problem_of(("1\n[2]", "[[1, 2]]"), function="f"),
        "def f(a, b): return [(a, *b)]",
        True,
        LENIENT,
    ),
    (problem_of(('"a\\nb"', '"b"'), function="f"), "def f(a): return a[-1]", True, LIVECODEBENCH),
]


@pytest.fixture
def pool(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> Iterator[CodePool]:
    monkeypatch.setattr(pool_module, "find_sandbox", lambda: kind)
    with CodePool(2, seconds=20) as pool:
        yield pool


def test_verdicts(pool: CodePool) -> None:
    verdicts = pool.check([(tests, fenced(program)) for tests, program, *_ in CASES])
    for (_, program, correct, origin), verdict in zip(CASES, verdicts, strict=True):
        assert verdict == Verdict(correct, program[:300], "ok"), origin


def test_statuses(pool: CodePool) -> None:
    pool.seconds, pool.memory_mb = 2.0, 256
    programs = ["while True: pass", "bytearray(1 << 29)", "while True: print('x' * 1000000)"]
    verdicts = pool.check([(ADD, fenced(p)) for p in programs] + [(ADD, "none"), (ADD, "")])
    assert [v.status for v in verdicts] == ["timeout", "failed", "failed", "unparsed", "unparsed"]
    assert not any(v.correct for v in verdicts)
    assert [v.extracted for v in verdicts] == [*programs, None, None]


def test_it_ends_at_the_first_failure(pool: CodePool) -> None:
    """The second test would not end."""
    program = "if int(input()) == 2:\n    while True: pass"
    assert pool.check([(problem_of(("1", "1"), ("2", "2")), fenced(program))])[0].status == "ok"


def test_what_it_extracts_is_cut(pool: CodePool) -> None:
    assert len(pool.check([(ADD, fenced("#" * 1000))])[0].extracted or "") == 300


def test_equal_pairs_are_judged_once(pool: CodePool) -> None:
    calls: list[tuple[int, int]] = []
    right, wrong = (ADD, fenced(CASES[0][1])), (ADD, fenced("print(3)"))
    verdicts = pool.check([right, wrong, right], lambda *call: calls.append(call))
    assert [v.correct for v in verdicts] == [True, False, True]
    assert len(calls) == 2
    assert calls[-1] == (3, 3)
    assert pool.check([]) == []


def test_from_many_threads(pool: CodePool) -> None:
    """No more programs at a time than workers."""
    found: dict[int, Verdict] = {}

    def check(number: int) -> None:
        tests = problem_of(("", str(number)))
        found[number] = pool.check([(tests, fenced(f"print({number + number % 2})"))])[0]

    threads = [threading.Thread(target=check, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[number].correct for number in range(6)] == [True, False] * 3


def test_interruption(pool: CodePool, wait_until_ended: Callable[[], list[int]]) -> None:
    """What has not begun never will, and what has ends with its test."""
    pool.seconds = 1.0

    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    slow = [(ADD, fenced(f"while True: {number}")) for number in range(20)]
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        pool.check([(ADD, fenced("print(3)")), *slow], interrupt)
    assert time.monotonic() - start < 15
    assert wait_until_ended() == []


def test_tests_that_are_none(pool: CodePool) -> None:
    with pytest.raises(ValueError, match="are not JSON"):
        pool.check([("{", fenced("print(3)"))])


def test_the_record(pool: CodePool, kind: Kind) -> None:
    assert pool.sandbox == f"{kind.name}, Python {sys.version.split()[0]}, numpy {version('numpy')}"


def test_the_record_without_numpy(
    pool: CodePool, kind: Kind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "numpy_folders", list)
    assert pool.sandbox == f"{kind.name}, Python {sys.version.split()[0]}, no numpy"


def test_a_sandbox_that_does_not_start_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Kind("broken", lambda: ["/bin/sh", "-c", "echo no room >&2; exit 1"])
    monkeypatch.setattr(pool_module, "find_sandbox", lambda: broken)
    with pytest.raises(WorkerError, match="no room"):
        CodePool(1).check([(ADD, fenced("print(3)"))])


@pytest.mark.parametrize("first", ["kill -9 $$", "echo ready; read program; kill -9 $$"])
def test_a_sandbox_that_was_killed_gets_another_chance(
    kind: Kind, first: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it starts, and while it runs the program."""
    killed = [["/bin/sh", "-c", first]]
    once = Kind("killed once", lambda: killed.pop() if killed else kind.command())
    monkeypatch.setattr(pool_module, "find_sandbox", lambda: once)
    assert CodePool(1).check([(ADD, fenced(CASES[0][1]))])[0].correct


@pytest.mark.parametrize(
    "reply", ["\\377 1\\n1", "ok", "ok x\\n", "ok -1\\n", "ok 99999999\\n", "  \\n"]
)
def test_a_sandbox_that_was_taken_over_gives_no_verdict(
    reply: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever comes out of it instead of a status and an output, no test is passed."""
    forger = Kind(
        "forger", lambda: ["/bin/sh", "-c", f"echo ready; read program; printf '{reply}'"]
    )
    monkeypatch.setattr(pool_module, "find_sandbox", lambda: forger)
    verdict = CodePool(1).check([(problem_of(("", "1")), fenced("print(1)"))])[0]
    assert (verdict.correct, verdict.status) in [(False, "ok"), (False, "failed")]


def test_time_is_processor_time(pool: CodePool) -> None:
    """A program that waits, for the processor too, has longer."""
    pool.seconds = 0.5
    programs = ["import time; time.sleep(1); print(1)", "import time; time.sleep(60)"]
    verdicts = pool.check([(problem_of(("", "1")), fenced(program)) for program in programs])
    assert [(v.correct, v.status) for v in verdicts] == [(True, "ok"), (False, "timeout")]


def test_unsandboxed_warns_and_judges_alike() -> None:
    with pytest.warns(RuntimeWarning, match="without a sandbox") as warned:
        pool = CodePool(2, seconds=20, unsandboxed=True)
    assert len(warned) == 1
    rows = [CASES[0], CASES[2], CASES[4]]
    verdicts = pool.check([(tests, fenced(program)) for tests, program, *_ in rows])
    assert [v.correct for v in verdicts] == [True, False, True]
    assert pool.sandbox.startswith("unsandboxed, Python 3")
    pool.seconds = 0.5
    assert pool.check([(ADD, fenced("while True: pass"))])[0].status == "timeout"


@pytest.mark.filterwarnings("ignore:programs that a model wrote")
def test_unsandboxed_programs_end_with_their_time(tmp_path: Path) -> None:
    program = (
        f"import os, time\nopen('{tmp_path}/process', 'w').write(str(os.getpid()))\ntime.sleep(100)"
    )
    verdict = CodePool(1, seconds=0.2, unsandboxed=True).check([(ADD, fenced(program))])[0]
    assert verdict.status == "timeout"
    process = Path("/proc", (tmp_path / "process").read_text())
    patience = time.monotonic() + 10
    while _command(process) and time.monotonic() < patience:
        time.sleep(0.02)
    assert _command(process) == b""  # ended, or waiting to be taken away


@pytest.mark.parametrize(
    "bad", [{"workers": 0}, {"seconds": 0}, {"seconds": float("inf")}, {"memory_mb": 255}]
)
def test_impossible_pool(bad: dict) -> None:
    with pytest.raises(ValueError, match="at least one worker"):
        CodePool(**bad)


PARENT = """
import sys
from respo.rewards.code import CodePool, pool
from respo.rewards.code.kinds import BUBBLEWRAP, NAMESPACES, Kind
kind = {kind.name: kind for kind in (BUBBLEWRAP, NAMESPACES)}[sys.argv[1]]
pool.find_sandbox = lambda: Kind(kind.name, lambda: [*kind.command(), sys.argv[2]])
tests = '{"function": null, "tests": [{"input": "", "output": ""}]}'
programs = ["while True: pass", "import os, time\\nos.fork() or os.setsid()\\ntime.sleep(100)"]
CodePool(2, seconds=100).check([(tests, f"```\\n{program}\\n```") for program in programs])
"""


def test_nothing_outlives_a_killed_parent(
    kind: Kind, marker: str, wait_until_ended: Callable[[], list[int]]
) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, kind.name, f"{marker}-parent"])
    mark = f"{marker}-parent".encode()
    patience = time.monotonic() + 30
    with parent:
        while time.monotonic() < patience:
            lines = [_command(process) for process in Path("/proc").iterdir()]
            # Of each sandbox the first process and the program, of the second one its child.
            if sum(mark in line and b"-S\0" in line for line in lines) >= 5:
                break
            time.sleep(0.05)
        else:
            pytest.fail("the programs did not start")
        parent.send_signal(signal.SIGKILL)
    assert wait_until_ended() == []


def _command(process: Path) -> bytes:
    try:
        return (process / "cmdline").read_bytes() if process.name.isdigit() else b""
    except OSError:
        return b""


@pytest.mark.skipif(os.geteuid() != 0, reason="root becomes an ordinary user")
def test_an_ordinary_user_has_it_too(kind: Kind) -> None:
    """With an interpreter and a repository that it can read."""
    source = Path(pool_module.__file__).parents[3]
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from respo.rewards.code.find import why_not\n"
        "from respo.rewards.code.kinds import BUBBLEWRAP, NAMESPACES\n"
        "print(*(why_not(k) for k in (BUBBLEWRAP, NAMESPACES) if k.name == sys.argv[2]))\n"
    )
    check = [
        "/usr/bin/python3",
        "-c",
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import respo.rewards.workers; sys.exit(sys.version_info < (3, 11))",
        str(source),
    ]
    if subprocess.run(check, user=65534, group=65534, cwd="/", capture_output=True).returncode:
        pytest.skip("the system's Python is older than 3.11 or others cannot read the repository")
    done = subprocess.run(
        ["/usr/bin/python3", "-c", code, str(source), kind.name],
        user=65534,
        group=65534,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
    )
    assert (done.stdout, done.stderr) == ("None\n", "")
