r"""Verdicts per second of the scoring, against Math-Verify itself and verl's use of it.

400 responses to MATH problems (50 problems, 8 each) become 7,384, as many as a checkpoint of the
ReSPO study has:

- `repeated`: the same responses again and again; equal pairs are checked once.
- `padded`: the same, each time behind another first sentence, so that all responses differ and end
  as the real ones do: what repeats is a gold answer and what stands in the last box.
- `K = 16`: 462 problems with 16 responses each. Every problem's responses stand there twice, the
  second time behind another first sentence; further problems are made from the 50 by adding the
  same number to every number of the gold answer and the responses. So all responses differ, and
  answers are equal only within a problem, as often as those of the real responses are.
- `no repetition`: by the same means each pair has numbers of its own.

Compared are `parse` and `verify` of Math-Verify in one process without time-outs, verl's
`compute_score`, and 2 workers of ours, in turns. Ours ask Math-Verify too: by processor they can be
ahead of it only as far as something repeats (`no repetition`: not at all), by wall clock there are
two of them. verl's is called by four threads, so that its pool of processes always has work, and
on an eighth of the responses, since it takes milliseconds for each. Processor time is that of all
processes that take part, so verdicts/s are by processor. The start of processes is not counted.
Verdicts must be Math-Verify's. Then 1 % of the answers hang, with a limit of 1 s each; and files of
many rows are scored from the command line.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify

from benchmarks.race import Row, Taken, compare, main
from respo.parquet import parquet_writer
from respo.rewards.workers import Verdict, WorkerPool

SHARED = Path(os.environ.get("RESPO_SHARED", Path(__file__).parents[2] / "shared"))
RESPONSES = SHARED / "data/generations/math_50x8.jsonl"
TOTAL, SAMPLES, WORKERS, ROUNDS = 7384, 16, 2, 2
LATEX = [LatexExtractionConfig()]
BOTH = [ExprExtractionConfig(), LatexExtractionConfig()]

Pair = tuple[str, str]


class Result(NamedTuple):
    """What one contestant took for a list of pairs."""

    correct: list[bool]
    wall: float
    processor: float

    @property
    def taken(self) -> Taken:
        return Taken(self.processor, self.wall, len(self.correct))


def rows(quick: bool) -> Iterator[Row]:
    if not RESPONSES.exists():
        sys.exit(f"error: {RESPONSES}: no such file; set RESPO_SHARED to the folder that has it")
    lines = RESPONSES.read_text(encoding="utf-8").splitlines()
    problems = [(row["answer"], row["responses"]) for row in map(json.loads, lines)]
    cases = {
        "repeated": repeated(problems),
        "padded": [(g, f"Attempt {n}. {r}") for n, (g, r) in enumerate(repeated(problems))],
        "K = 16": samples(problems),
        "no repetition": distinct(problems),
    }
    if quick:
        cases = {"K = 16": cases["K = 16"][:40]}
    with WorkerPool(WORKERS) as pool:
        for name, pairs in cases.items():
            yield from speed(name, pairs, pool, 1 if quick else ROUNDS)
    if not quick:
        yield poisoned(cases["K = 16"])
    yield from memory(problems, [100] if quick else [10**4])


def repeated(problems: Sequence[tuple[str, list[str]]]) -> list[Pair]:
    pairs = [(gold, response) for gold, responses in problems for response in responses]
    return [pairs[n % len(pairs)] for n in range(TOTAL)]


def samples(problems: Sequence[tuple[str, list[str]]]) -> list[Pair]:
    pairs = []
    for n in range(-(-TOTAL // SAMPLES)):
        gold, responses = problems[n % len(problems)]
        shift = 1000 * (n // len(problems))
        for sample in range(SAMPLES):
            response = moved(responses[sample % len(responses)], shift)
            pairs.append((moved(gold, shift), f"Attempt {'I' * sample}. {response}"))
    return pairs[:TOTAL]


def distinct(problems: Sequence[tuple[str, list[str]]]) -> list[Pair]:
    pairs = repeated(problems)
    return [
        (moved(gold, 7 * n), moved(response, 7 * n)) for n, (gold, response) in enumerate(pairs)
    ]


def moved(text: str, shift: int) -> str:
    """Add to each number; numbers in the gold answer and the response stay equal if they are."""
    if not shift:
        return text
    return re.sub(r"(?<![\d.,])\d{1,6}(?![\d.,]*\d)", lambda m: str(int(m[0]) + shift), text)


def speed(name: str, pairs: list[Pair], pool: WorkerPool, rounds: int) -> Iterator[Row]:
    """Race ours with the peers, and check all verdicts."""
    found = [
        (ours(pairs, pool), directly(pairs), verl(pairs[: max(8, len(pairs) // 8)]))
        for _ in range(rounds)
    ]
    mine, direct, by_verl = ([result for result in of if result] for of in zip(*found, strict=True))
    for result in mine:
        assert result.correct == direct[0].correct, "a verdict differs from Math-Verify's"
    taken = [result.taken for result in mine]
    peers = {"Math-Verify": direct, "verl": by_verl}
    for peer, results in peers.items():
        if results:
            theirs = [result.taken for result in results]
            yield compare(name, "verdicts/s", taken, peer, theirs)


def directly(pairs: Sequence[Pair]) -> Result:
    def equal(gold: str, response: str) -> bool:
        golds = parse(f"\\boxed{{{gold}}}", LATEX, parsing_timeout=None)
        answers = parse(response, BOTH, parsing_timeout=None)
        return bool(verify(golds, answers, timeout_seconds=None))

    equal("1", "1")
    wall, processor = time.perf_counter(), time.process_time()
    correct = [equal(*pair) for pair in pairs]
    return Result(correct, time.perf_counter() - wall, time.process_time() - processor)


def ours(pairs: Sequence[Pair], pool: WorkerPool) -> Result:
    pool.close()  # new processes, which remember nothing
    pool.check([(str(n), str(n)) for n in range(2 * WORKERS)])
    while len(pool._workers) < WORKERS or any(w.state != "idle" for w in pool._workers):
        pool.check([(str(n), f"{n}.") for n in range(2 * WORKERS)])
    workers = [worker.process.pid for worker in pool._workers]
    wall, processor = time.perf_counter(), time.process_time() + sum(map(seconds_of, workers))
    correct = [verdict.correct for verdict in pool.check(pairs)]
    wall = time.perf_counter() - wall
    processor = time.process_time() + sum(map(seconds_of, workers)) - processor
    return Result(correct, wall, processor)


def seconds_of(pid: int) -> float:
    """Processor time of a process; 0 where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


VERL = """
import json, os, sys, time
from concurrent.futures import ThreadPoolExecutor

def processor(pids):
    fields = [open(f"/proc/{pid}/stat").read().rpartition(")")[2].split() for pid in pids]
    return sum(int(f[11]) + int(f[12]) for f in fields) / os.sysconf("SC_CLK_TCK")

if __name__ == "__main__":
    from verl.utils.reward_score import math_verify
    pairs = json.load(open(sys.argv[1]))
    with ThreadPoolExecutor(4) as threads:
        score = lambda pair: math_verify.compute_score(pair[1], pair[0])
        list(threads.map(score, [("1", "1")] * 64))
        pids = [os.getpid(), *math_verify._get_pool()._processes]
        wall, cpu = time.perf_counter(), processor(pids)
        correct = list(threads.map(score, pairs))
        wall, cpu = time.perf_counter() - wall, processor(pids) - cpu
    math_verify._get_pool().shutdown()
    print(json.dumps([[score > 0 for score in correct], wall, cpu]))
"""


def verl(pairs: Sequence[Pair]) -> Result | None:
    with tempfile.TemporaryDirectory() as folder:
        script, data = Path(folder) / "run.py", Path(folder) / "pairs.json"
        script.write_text(VERL)
        data.write_text(json.dumps(pairs))
        done = subprocess.run([sys.executable, script, data], capture_output=True, text=True)
    if done.returncode:
        if "ModuleNotFoundError" not in done.stderr:
            sys.exit(done.stderr)
        return None
    return Result(*json.loads(done.stdout.splitlines()[-1]))


def poisoned(pairs: Sequence[Pair]) -> Row:
    """One answer in 100 hangs, each another one; all other verdicts are as without."""
    bad = {n: (pairs[n][0], rf"\boxed{{9^{{9^{{{n}}}}}}}") for n in range(99, TOTAL, 100)}
    with WorkerPool(WORKERS, seconds=1) as pool:
        expected = pool.check(pairs)
        start = time.perf_counter()
        found = pool.check([bad.get(n, pair) for n, pair in enumerate(pairs)])
        wall = time.perf_counter() - start
    timeout = Verdict(False, None, "timeout")
    assert found == [timeout if n in bad else verdict for n, verdict in enumerate(expected)]
    return Row(
        f"{len(bad)} of {TOTAL} answers hang: wall time, {len(bad) // WORKERS} s of it waiting",
        "s",
        [wall],
    )


def memory(problems: Sequence[tuple[str, list[str]]], sizes: Sequence[int]) -> Iterator[Row]:
    """Score files from the command line; its memory is that of all its processes."""
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "g.parquet"
            write_rows(source, problems, size)
            command = [
                *(sys.executable, "-m", "respo.evaluation.score", "--generations", source),
                *("--out", Path(folder) / "s.parquet", "--workers", str(WORKERS)),
            ]
            start = time.perf_counter()
            with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
                own = workers = 0.0
                while process.poll() is None:
                    own = max(own, peak_mb(process.pid))
                    workers = max([workers, *map(peak_mb, children(process.pid))])
                    time.sleep(0.05)
            wall = time.perf_counter() - start
            assert process.returncode == 0
        yield Row(f"file of {size:,} rows: wall time", "s", [wall])
        yield Row(f"file of {size:,} rows: memory", "MB", [own + WORKERS * workers])


def write_rows(path: Path, problems: Sequence[tuple[str, list[str]]], size: int) -> None:
    """Write responses that all differ, 16 to a problem with numbers of its own."""
    import pyarrow as pa

    schema = pa.schema(
        {
            "problem_id": pa.string(),
            "sample": pa.int32(),
            "answer": pa.string(),
            "response": pa.string(),
        }
    )
    with parquet_writer(path, schema, {}) as append:
        for first in range(0, size, 4096):
            rows = []
            for n in range(first, min(size, first + 4096)):
                problem, sample = divmod(n, SAMPLES)
                gold, responses = problems[problem % len(problems)]
                response = moved(responses[sample % len(responses)], problem)
                values = (str(problem), sample, moved(gold, problem), f"{'I' * sample}. {response}")
                rows.append(dict(zip(schema.names, values, strict=True)))
            append(pa.Table.from_pylist(rows, schema))


def peak_mb(pid: int) -> float:
    """Most memory that a process has had; 0 if it is gone or the system does not tell."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0.0
    return int(found[1]) / 1024 if found else 0.0


def children(pid: int) -> list[int]:
    try:
        return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


if __name__ == "__main__":
    main(rows, __doc__)
