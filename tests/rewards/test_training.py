"""The rewards of training: verdicts of the evaluation as +1 and -1, for many threads at a time."""

import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from respo.rewards import training
from respo.rewards.code import CodePool
from respo.rewards.training import Checkers, Shared, training_reward, training_rewards
from respo.rewards.workers import WorkerError

# gold, response, by the strict box, by Math-Verify. The strict box: by hand, from its rule.
# Math-Verify: the cases of test_workers.py.
CASES = [
    ("33", r"so \boxed{33}", 1.0, 1.0),
    ("33", r"\boxed{ 33 }", -1.0, 1.0),
    ("033", r"\boxed{33}", -1.0, 1.0),
    (r"\frac{1}{2}", "we get $0.5$", -1.0, 1.0),
    ("33", "The answer is 33.", -1.0, 1.0),
    (r"\{1,2\}", r"\boxed{\{2,1\}}", -1.0, 1.0),
    ("11", r"\boxed{711}", -1.0, -1.0),
    ("33", r"so \boxed{33} ... no, \boxed{34}", -1.0, -1.0),
    # Without a mathematical reading.
    ("33", "I do not know.", -1.0, -1.0),
    ("33", "", -1.0, -1.0),
    ("", r"\boxed{33}", -1.0, -1.0),
    ("33", "(" * 1_000_000, -1.0, -1.0),
]
HUGE = ("3", r"\boxed{9^{9^9}}")


@pytest.fixture
def checkers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Checkers]:
    """Two checkers in the place of those of the process."""
    checkers = Checkers(2)
    monkeypatch.setattr(training, "shared_checkers", lambda: checkers)
    yield checkers
    checkers.close()


@pytest.mark.parametrize("column", [0, 1], ids=["strict_box", "math_verify"])
def test_one_by_one_and_in_a_batch(column: int) -> None:
    verifier = ("strict_box", "math_verify")[column]
    pairs = [case[:2] for case in CASES]
    expected = [case[2 + column] for case in CASES]
    assert training_rewards(verifier, pairs) == expected
    assert [training_reward(verifier, *pair) for pair in pairs] == expected


def test_an_unknown_verifier() -> None:
    with pytest.raises(ValueError, match="'exact' is none of strict_box, math_verify"):
        training_reward("exact", "1", "1")
    with pytest.raises(ValueError, match="'exact' is none of strict_box, math_verify"):
        training_rewards("exact", [("1", "1")])


@pytest.mark.usefixtures("checkers")
def test_many_threads_at_a_time() -> None:
    numbers = list(range(60))
    with ThreadPoolExecutor(12) as threads:
        rewards = threads.map(
            lambda n: training_reward("math_verify", str(n), rf"\boxed{{{n + n % 3}}}"), numbers
        )
    assert list(rewards) == [-1.0 if n % 3 else 1.0 for n in numbers]


def test_workers_are_started_as_needed(checkers: Checkers) -> None:
    for _ in range(3):
        checkers.check("1", "1")
    assert [len(pool._workers) for pool in checkers._pools] == [0, 1]


def test_an_answer_that_hangs_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    checkers = Checkers(2, seconds=3.0)
    monkeypatch.setattr(training, "shared_checkers", lambda: checkers)
    for pool in checkers._pools:
        pool.check([("1", "1")])
    late: list[float] = []
    hanging = threading.Thread(target=lambda: late.append(training_reward("math_verify", *HUGE)))
    hanging.start()
    while len(checkers._free.queue) == 2:
        time.sleep(0.001)
    rewards = [training_reward("math_verify", "5", str(n)) for n in range(3, 8)]
    assert rewards == [-1.0, -1.0, 1.0, -1.0, -1.0]
    assert late == []
    hanging.join()
    assert late == [-1.0]
    # The killed worker is replaced.
    with ThreadPoolExecutor(2) as threads:
        again = threads.map(lambda n: training_reward("math_verify", "7", str(n)), (7, 8))
    assert list(again) == [1.0, -1.0]
    checkers.close()


def test_where_answers_cannot_be_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checkers: Checkers
) -> None:
    (tmp_path / "math_verify.py").write_text("raise ImportError('No module named math_verify')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    for _ in range(3):  # a failed start does not use a worker up
        with pytest.raises(WorkerError, match="install it with: pip install math-verify"):
            training_reward("math_verify", "1", "1")


def test_one_object_for_all_threads() -> None:
    class Slow:
        made = 0

        def __init__(self) -> None:
            time.sleep(0.02)
            Slow.made += 1

        def close(self) -> None: ...

    shared = Shared(Slow)
    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(lambda _: shared(), range(8)))) == 1
    assert Slow.made == 1


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
def test_no_process_is_left_at_the_exit() -> None:
    code = """
        from respo.rewards import training
        assert training.training_reward("math_verify", "1", "1.0") == 1.0
        assert training.training_rewards("math_verify", [("1", "1"), ("2", "3")]) == [1.0, -1.0]
        pools = [*training.shared_checkers()._pools, training.shared_pool()]
        print(*[worker.process.pid for pool in pools for worker in pool._workers])
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
    )
    pids = done.stdout.split()
    assert len(pids) == 3
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert done.stderr == ""


ADD_ONE = '{"function": null, "tests": [{"input": "1", "output": "2"}]}'


def test_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one from many threads, and in a batch."""
    pool = CodePool(2, seconds=20)
    try:
        assert pool.sandbox
    except WorkerError as error:
        pytest.skip(str(error))
    monkeypatch.setattr(training, "shared_code_pool", lambda: pool)
    responses = [f"```\nprint(int(input()) + {number})\n```" for number in (1, 2, 1)] + ["none"]
    pairs = [(ADD_ONE, response) for response in responses]
    expected = [1.0, -1.0, 1.0, -1.0]
    assert training_rewards("code", pairs) == expected
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda pair: training_reward("code", *pair), pairs))
    assert found == expected


def test_the_pool_for_programs_is_made_once() -> None:
    assert training.shared_code_pool() is training.shared_code_pool()
    assert training.shared_code_pool().size == training.WORKERS


def test_letters() -> None:
    pairs = [("B", r"\boxed{B}"), ("A", r"\boxed{B}")]
    assert training_rewards("choice", pairs) == [1.0, -1.0]
