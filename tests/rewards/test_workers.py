import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from respo.rewards.workers import AHEAD_CHARACTERS, Verdict, WorkerError, WorkerPool, _Waiting

SHARED = Path(os.environ.get("RESPO_SHARED", Path(__file__).parents[3] / "shared"))

PAPER = "evaluation rule of the paper (ReSPO, App. D.2)"
REPORT = "public bug reports about mathematical verifiers"
LIBRARY = "Math-Verify's documented behaviour, seen to hold for 0.9.0"

HUGE = [
    r"\dfrac{5^{(5^{(5^{(5^5)})}-4)}-5}{16}",
    "9^{9^9}",
    "(10^7)!",
    r"\binom{10^9}{5\cdot10^8}",
]

CASES = [
    # gold, response, correct, status, origin
    ("1", "1", True, "ok", REPORT),
    ("033", r"\boxed{33}", True, "ok", REPORT),
    ("11", r"\boxed{711}", False, "ok", REPORT),
    ("11", "711", False, "ok", REPORT),
    # Boxes close to each other are one answer with several parts; otherwise the last one counts.
    ("34", r"so \boxed{33} ... no, \boxed{34}", False, "ok", LIBRARY),
    ("33", r"so \boxed{33} ... no, \boxed{34}", False, "ok", LIBRARY),
    (r"\{33, 34\}", r"either \boxed{33} or \boxed{34}", True, "ok", LIBRARY),
    ("34", r"so \boxed{33}. " + "No, that is wrong. " * 9 + r"\boxed{34}", True, "ok", LIBRARY),
    ("33", r"so \boxed{33}. " + "No, that is wrong. " * 9 + r"\boxed{34}", False, "ok", LIBRARY),
    # Both modes: plain expressions and LaTeX, with and without a box.
    ("33", "The answer is 33.", True, "ok", PAPER),
    (r"\frac{1}{2}", "Answer: 1/2", True, "ok", PAPER),
    (r"\frac{1}{2}", "we get $0.5$", True, "ok", PAPER),
    (r"\frac{1}{2}", r"\boxed{\dfrac12}", True, "ok", PAPER),
    # The strict box refuses these; the evaluation does not.
    ("33", r"\boxed{ 33 }", True, "ok", PAPER),
    ("33", r"\boxed{\text{33}}", True, "ok", PAPER),
    ("33", r"\boxed{33}" + "x" * 101, True, "ok", PAPER),
    (r"\{1,2\}", r"\boxed{\{2,1\}}", True, "ok", LIBRARY),
    ("10{,}000", r"\boxed{10000}", True, "ok", LIBRARY),
    ("(3, 4)", r"\boxed{(4, 3)}", False, "ok", LIBRARY),
    ("x=5", r"\boxed{5}", True, "ok", LIBRARY),
    # No mathematical reading.
    ("33", "", False, "unparsed", REPORT),
    ("33", " \n\t ", False, "unparsed", REPORT),
    ("33", "I do not know.", False, "unparsed", REPORT),
    ("33", "(" * 1_000_000, False, "unparsed", REPORT),
    ("33", r"\boxed{3", False, "unparsed", REPORT),
    ("33", r"\boxed{}", False, "unparsed", PAPER),
    ("", r"\boxed{33}", False, "unparsed", PAPER),
    # Odd characters survive the way to the worker and back.
    ("33", "\ud800 \x00 \u2028 \\boxed{33}\n", True, "ok", "by hand"),
]


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    with WorkerPool(2, seconds=20) as pool:
        yield pool


@pytest.fixture(scope="module")
def verdicts(pool: WorkerPool) -> list[Verdict]:
    return pool.check([(gold, response) for gold, response, *_ in CASES])


@pytest.mark.parametrize("row", range(len(CASES)))
def test_case(verdicts: list[Verdict], row: int) -> None:
    _, _, correct, status, origin = CASES[row]
    assert (verdicts[row].correct, verdicts[row].status) == (correct, status), origin


def test_extracted_text(pool: WorkerPool) -> None:
    boxed, plain, none, long = pool.check(
        [
            ("1", r"so \boxed{\frac{1}{2}}"),
            ("1", "Answer: 7 apples"),
            ("1", "no idea"),
            ("1", rf"\boxed{{{'x + ' * 500}1}}"),
        ]
    )
    assert boxed.extracted == r"\frac{1}{2}"
    assert plain.extracted == "7"
    assert none.extracted is None
    assert long.extracted is not None
    assert len(long.extracted) == 300


def test_from_another_thread(pool: WorkerPool) -> None:
    """Math-Verify's own time-outs would raise here."""
    verdicts: list[Verdict] = []
    threads = [
        threading.Thread(target=lambda: verdicts.extend(pool.check([("1", "1")]))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verdicts == [Verdict(True, "1", "ok")] * 3


def test_huge_numbers_time_out_alone(capfd: pytest.CaptureFixture[str]) -> None:
    good = [(str(n), rf"\boxed{{{n}}}") for n in range(6)]
    huge = [("3", rf"\boxed{{{number}}}") for number in HUGE] + [("9^{9^9}", r"\boxed{3}")]
    pairs = [pair for both in zip(good, huge, strict=False) for pair in both] + good[5:]
    start = time.monotonic()
    with WorkerPool(2, seconds=1) as pool:
        verdicts = pool.check(pairs)
    # Five hang for 1 s on two workers; the rest is starting workers anew.
    assert time.monotonic() - start < 20
    assert [v.correct for v in verdicts] == [True, False] * 5 + [True]
    assert [v.status for v in verdicts] == ["ok", "timeout"] * 5 + ["ok"]
    assert capfd.readouterr() == ("", "")


def test_a_huge_number_equals_itself(pool: WorkerPool) -> None:
    assert all(v.correct for v in pool.check([(n, rf"\boxed{{{n}}}") for n in HUGE]))


def test_equal_pairs_are_compared_once(pool: WorkerPool) -> None:
    calls: list[tuple[int, int]] = []
    pairs = [("7", "7"), ("7", "8"), ("7", "7"), ("8", "8"), ("7", "7")]
    verdicts = pool.check(pairs, lambda done, total: calls.append((done, total)))
    assert [v.correct for v in verdicts] == [True, False, True, True, True]
    assert len(calls) == 3
    assert calls[-1] == (5, 5)
    assert pool.check([]) == []


def test_a_worker_keeps_to_its_gold_answer() -> None:
    """As long as there is one; then it takes another that no other worker is at, or helps out."""
    waiting = _Waiting([("a", "1"), ("b", "1"), ("a", "2"), ("c", "1"), ("c", "2")])
    assert waiting.take(1, "", set()) == [("a", "1")]
    assert waiting.take(1, "", {"a"}) == [("b", "1")]
    assert waiting.take(9, "a", {"b"}) == [("a", "2")]
    assert waiting.take(1, "b", {"a"}) == [("c", "1")]
    assert waiting
    assert waiting.take(0, "a", {"c"}) == [("c", "2")]
    assert not waiting


def test_a_worker_is_handed_several_short_answers() -> None:
    half = "x" * (AHEAD_CHARACTERS // 2)
    pairs = [("a", half), ("a", half), ("a", "1"), ("a", half * 3), ("a", "2"), ("a", "3")]
    waiting = _Waiting(pairs)
    assert waiting.take(9, "", set()) == pairs[:2]
    assert waiting.take(9, "", set()) == pairs[2:3]
    assert waiting.take(9, "", set()) == pairs[3:4]
    # What a dead worker had not come to stands in front again.
    waiting.put_back([("a", "0"), ("a", "1")])
    assert waiting.take(3, "", set()) == [("a", "0"), ("a", "1"), ("a", "2")]
    assert waiting.take(1, "", set()) == [("a", "3")]
    assert not waiting


def test_answers_behind_one_that_hangs_have_their_own_time(stand_in: Path) -> None:
    """One worker with 16 answers, all of the same problem; three of them misbehave."""
    words = [f"hang {n}" if n in (3, 9) else f"die {n}" if n == 5 else f"{n}" for n in range(64)]
    with WorkerPool(1, seconds=1) as pool:
        verdicts = pool.check([("g", word) for word in words])
    assert [v.status for v in verdicts] == [
        "timeout" if "hang" in word else "failed" if "die" in word else "ok" for word in words
    ]


def test_closed_pool_starts_anew() -> None:
    pool = WorkerPool(1)
    assert pool.check([("1", "1")])[0].correct
    pool.close()
    assert pool.check([("1", "2")])[0].status == "ok"
    pool.close()


@pytest.mark.parametrize(
    "bad",
    [
        {"workers": 0},
        {"seconds": 0},
        {"seconds": -1.0},
        {"seconds": float("inf")},
        {"memory_mb": 255},
    ],
)
def test_impossible_pool(bad: dict) -> None:
    with pytest.raises(ValueError, match="at least one worker"):
        WorkerPool(**bad)


# A stand-in for Math-Verify makes a worker misbehave on purpose.
STAND_IN = """
import os, sys, time, types
sys.modules["math_verify.parser"] = parser = types.ModuleType("math_verify.parser")
def extract_match(): pass
parser.extract_match = parser.parse_expr = extract_match
parser.get_extraction_regexes = lambda targets: []
def ExprExtractionConfig(): pass
def LatexExtractionConfig(): pass
eaten = []
def parse(text, config, parsing_timeout):
    if "die" in text: os._exit(3)
    if "killed" in text and not os.path.exists(os.environ["PYTHONPATH"] + "/" + text):
        open(os.environ["PYTHONPATH"] + "/" + text, "w").close()
        os.kill(os.getpid(), 9)
    if "eat" in text: eaten.append(bytearray(200 << 20))
    if "raise" in text: raise MemoryError
    if "hang" in text: time.sleep(1000)
    if "print" in text:
        print("9" * 100_000)
        os.write(1, b"noise"); os.write(2, b"noise")
        assert os.read(0, 10) == b""
    return [text]
def verify(golds, answers, timeout_seconds): return True
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "math_verify.py").write_text(STAND_IN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return tmp_path


def test_misbehaviour_concerns_one_answer(
    stand_in: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ["a", "die", "b", "raise", "c", "print", "d", "hang", "e", "die!", "f"]
    with WorkerPool(2, seconds=1) as pool:
        verdicts = pool.check([("g", word) for word in words])
        # Killed while idle (say, by the system for memory): noticed, and no verdict is lost.
        for worker in pool._workers:
            worker.process.kill()
            worker.process.wait()
        again = pool.check([("g", "x"), ("g", "y")])
    status = dict(zip(words, (v.status for v in verdicts), strict=True))
    expected = {"die": "failed", "die!": "failed", "raise": "failed", "hang": "timeout"}
    assert status == {word: expected.get(word, "ok") for word in words}
    assert again == [Verdict(True, "x", "ok"), Verdict(True, "y", "ok")]
    assert capfd.readouterr() == ("", "")


def test_an_answer_is_tried_again_if_its_worker_is_killed(stand_in: Path) -> None:
    words = ["a", "killed 1", "b", "die", "killed 2", "c"]
    calls: list[tuple[int, int]] = []
    with WorkerPool(1) as pool:
        verdicts = pool.check(
            [("g", word) for word in words], lambda done, total: calls.append((done, total))
        )
    assert [v.status for v in verdicts] == ["ok", "ok", "ok", "failed", "ok", "ok"]
    assert calls == [(n, 6) for n in range(1, 7)]


@pytest.mark.parametrize("deaths", [1, 2])
def test_a_worker_that_is_killed_while_it_starts_is_started_again(
    stand_in: Path, deaths: int
) -> None:
    library, dies = stand_in / "math_verify.py", "import os, signal\n"
    for number in range(deaths):
        mark = str(stand_in / f"died {number}")
        dies += f"if not os.path.exists({mark!r}):\n    open({mark!r}, 'w').close()\n"
        dies += "    os.kill(os.getpid(), signal.SIGKILL)\n"
    library.write_text(dies + STAND_IN)
    with WorkerPool(1) as pool:
        assert pool.check([("g", "a")]) == [Verdict(True, "a", "ok")]


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
def test_a_worker_whose_memory_fills_is_replaced(stand_in: Path) -> None:
    """Each answer leaves 200 MB behind: no worker lives to see the third, and none fails."""
    with WorkerPool(1, memory_mb=600) as pool:
        verdicts = pool.check([("g", f"eat {n}") for n in range(5)])
    assert [v.status for v in verdicts] == ["ok"] * 5


def test_missing_math_verify_is_explained(stand_in: Path) -> None:
    (stand_in / "math_verify.py").write_text("raise ImportError('No module named math_verify')")
    with (
        WorkerPool(1) as pool,
        pytest.raises(WorkerError, match="No module named math_verify; install it with"),
    ):
        pool.check([("1", "1")])


def test_worker_that_cannot_start_is_explained(stand_in: Path) -> None:
    (stand_in / "math_verify.py").write_text("import os; os._exit(9)")
    with WorkerPool(1) as pool, pytest.raises(WorkerError, match="did not start: exit code 9"):
        pool.check([("1", "1")])


def test_interruption_ends_the_workers(stand_in: Path) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    pool = WorkerPool(2, seconds=50)
    with pytest.raises(KeyboardInterrupt):
        pool.check([("g", "a"), ("g", "hang")], interrupt)
    assert pool._workers == []
    assert [v.status for v in pool.check([("g", "a")])] == ["ok"]
    pool.close()


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_workers_die_with_a_killed_parent() -> None:
    """One worker idle, one busy in a native multiplication that notices nothing."""
    code = r"""
        import json, sys
        from respo.rewards.workers import WorkerPool
        pool = WorkerPool(2, seconds=1.0)
        pool.check([("1", "1"), ("2", "2")])
        print(json.dumps([worker.process.pid for worker in pool._workers]), flush=True)
        pool.check([("3", r"\boxed{9^{9^9}}")])
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdout is not None
        pids = json.loads(parent.stdout.readline())
        time.sleep(0.2)
        assert all(alive(pid) for pid in pids)
        parent.send_signal(signal.SIGKILL)
    patience = time.monotonic() + 10
    while any(alive(pid) for pid in pids) and time.monotonic() < patience:
        time.sleep(0.05)
    assert not any(alive(pid) for pid in pids)


def test_memory_is_limited() -> None:
    code = (
        "from respo.rewards.worker_main import limit_resources\n"
        "limit_resources(256)\n"
        "try: bytearray(1 << 29)\n"
        "except MemoryError: print('refused')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n"


def last_box(text: str) -> str:
    content = text[text.rindex(r"\boxed{") + len(r"\boxed{") :]
    depth = 1
    for position, character in enumerate(content):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            return content[:position]
    raise AssertionError(text)


# Gold answers in which Math-Verify reads no mathematics: it compares them as text alone.
READ_AS_TEXT = [
    r"np.arcsin(10/13)",  # Python
    r"\frac{dM}{dt}=\frac{10^{5} L_{\odot}}{0.007 c^{2} M_{\odot}^{6}} M^{6}",  # \odot
    r"-1./3",  # a point without digits
    r"-3./2",
    r"\hbar \omega(v+1 / 2)-\frac{E_{0}^{2} e^{2}}{2 m \omega^{2}}",  # \hbar
    r"E_{1},E_{2}",  # names
    r"$m_{\max }=n^{2}-n-1$",  # \max
    r"$t(0,4]$",  # an interval after a name
    r"62.5%",  # LaTeX comments begin with %
    r"$8 \%$",
    r"17.5%",
]
# Powers of ten as Python writes them, in Minerva: Math-Verify reads 4.5 times e times 33.
E_NOTATION = re.compile(r"(-?[\d.]+)e([-+]?\d+)")


def benchmark_golds() -> list[str]:
    golds = []
    for path in sorted((SHARED / "data/benchmarks").glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if path.stem == "olympiadbench":
                golds.append(", ".join(row["final_answer"]))
            elif path.stem in ("math500", "minerva_math"):
                golds.append(last_box(row["answer" if path.stem == "math500" else "solution"]))
            else:
                golds.append(str(row["answer"]))
    return golds


@pytest.mark.skipif(not SHARED.exists(), reason="needs the benchmark files")
def test_every_benchmark_answer_equals_itself(pool: WorkerPool) -> None:
    """All 1,547 rows of the six benchmarks, units, degrees and several answers included."""
    golds = benchmark_golds()
    assert len(golds) == 1547
    verdicts = pool.check([(gold, rf"The answer is \boxed{{{gold}}}.") for gold in golds])
    assert [gold for gold, v in zip(golds, verdicts, strict=True) if not v.correct] == []


@pytest.mark.skipif(not SHARED.exists(), reason="needs the benchmark files")
def test_benchmark_answers_that_only_their_own_text_equals(pool: WorkerPool) -> None:
    """Limits of the protocol's verifier; the comment of minerva_math.yaml tells of them."""
    golds = benchmark_golds()
    # Against a text that is none of them, unparsed is what has no mathematical reading.
    verdicts = pool.check([(gold, r"\boxed{7777}") for gold in golds])
    unread = [gold for gold, v in zip(golds, verdicts, strict=True) if v.status == "unparsed"]
    assert unread == READ_AS_TEXT
    powers = [found for gold in golds if (found := E_NOTATION.fullmatch(gold.strip()))]
    assert len(powers) == 58
    written = [(m[0], rf"\boxed{{{m[1]} \times 10^{{{int(m[2])}}}}}") for m in powers]
    assert not any(verdict.correct for verdict in pool.check(written))
