"""The verifiers by name, as functions from responses to verdicts, and what each leaves on record.

Every verifier imports what it needs when it is chosen: the pipeline starts this hundreds of times.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from respo.cli import UserError
from respo.environment import environment
from respo.evaluation.generations import Generation, Gold
from respo.evaluation.problems import HELD_OUT
from respo.evaluation.program_tests import ProgramTests, gold_of
from respo.rewards import boxed_answer
from respo.rewards.workers import MEMORY_MB, SECONDS, Pair, Verdict, WorkerError, WorkerPool

VERIFIERS = {
    "math_verify": "mathematical equivalence (default)",
    "strict_box": "the last box in the last 100 characters equals the answer as text",
    "choice": "the letter that the response chooses equals the answer",
    "code": "the program in the response passes all tests of --tests, in a sandbox",
}
# Those of some verifiers alone.
OPTIONS = {
    "timeout": ("math_verify", "code"),
    "memory_mb": ("math_verify", "code"),
    "tests": ("code",),
    "unsandboxed": ("code",),
}
LETTER = re.compile(r"[(\[]?([A-J])[)\]]?[.:]?", re.IGNORECASE | re.ASCII)
REMEMBERED = 1 << 16  # verdicts; at most about 100 MB
PROGRAMS_AT_A_TIME = 256
TESTS_AT_A_TIME = 1 << 26  # characters

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Options:
    """What a verifier may be told; None is its default."""

    workers: int | None = None
    seconds: float | None = None
    memory_mb: int | None = None
    tests: Path | None = None
    unsandboxed: bool = False


@dataclass(frozen=True)
class Verifier:
    """One verifier, ready for work.

    Attributes:
        check: returns a verdict per response, in their order, and tells its progress as (finished,
            all); it raises a WorkerError where it cannot work.
        version: of the code that decides.
        environment: versions of all that has a part in it.
        limits: of one answer, empty where nothing can run long.
    """

    check: Callable[[Sequence[Generation], Progress], list[Verdict]]
    version: str
    environment: dict[str, str]
    limits: dict[str, Any] = field(default_factory=dict)


def gold_for(name: str, options: Options) -> Gold | None:
    """Return how a verifier reads the gold answers of a file; None: as text.

    Raises:
        UserError: the tests of programs are not there.
    """
    if name == "code":
        return gold_of(_tests(options))
    return _letter if name == "choice" else None


def _letter(problem: str, answer: str | None) -> str:
    found = LETTER.fullmatch((answer or "").strip())
    if not found:
        raise ValueError(
            f"column 'answer' is {'missing' if answer is None else f'{answer!r:.50}'}; with "
            "--verifier choice it must hold the letter of the right option, A to J: write that, or "
            "choose another verifier"
        )
    return found[1].upper()


def _tests(options: Options) -> Path:
    if options.tests is None:
        raise UserError(
            "--tests: is missing; the verifier 'code' needs the file of the benchmark's problems, "
            f"{HELD_OUT}"
        )
    return options.tests


@contextmanager
def open_verifier(name: str, options: Options) -> Iterator[Verifier]:
    """Start a verifier and end it.

    Raises:
        UserError: an option is missing, or it cannot work here; the text names the remedy.
    """
    try:
        with OPENERS[name](options) as verifier:
            yield verifier
    except WorkerError as error:
        raise UserError(str(error)) from None


@contextmanager
def _math_verify(options: Options) -> Iterator[Verifier]:
    seconds = options.seconds or SECONDS
    memory_mb = options.memory_mb or MEMORY_MB
    with WorkerPool(options.workers, seconds=seconds, memory_mb=memory_mb) as pool:

        def check(generations: Sequence[Generation], progress: Progress) -> list[Verdict]:
            return pool.check([(g.answer, g.response) for g in generations], progress)

        versions = environment("math-verify", "latex2sympy2_extended", "sympy")
        yield Verifier(
            _Once(check),
            versions["math-verify"],
            versions,
            {"seconds": seconds, "memory_mb": memory_mb},
        )


@contextmanager
def _code(options: Options) -> Iterator[Verifier]:
    from respo.rewards.code import CodePool

    limits = {"seconds": options.seconds, "memory_mb": options.memory_mb}
    given: dict[str, Any] = {key: v for key, v in limits.items() if v is not None}
    with (
        ProgramTests(_tests(options)) as tests,
        CodePool(options.workers, unsandboxed=options.unsandboxed, **given) as pool,
    ):

        def check(generations: Sequence[Generation], progress: Progress) -> list[Verdict]:
            verdicts: list[Verdict] = []
            for pairs in _programs(generations, tests):

                def told(done: int, _: int, before: int = len(verdicts)) -> None:
                    progress(before + done, len(generations))

                verdicts += pool.check(pairs, told)
            return verdicts

        versions = environment() | {"sandbox": pool.sandbox}
        yield Verifier(
            _Once(check),
            versions["respo"],
            versions,
            {"seconds": pool.seconds, "memory_mb": pool.memory_mb},
        )


def _programs(generations: Sequence[Generation], tests: ProgramTests) -> Iterator[list[Pair]]:
    """Yield pairs of tests and response, so many at a time that their tests fit into memory."""
    pairs: list[Pair] = []
    texts: dict[str, str] = {}
    for generation in generations:
        if len(pairs) == PROGRAMS_AT_A_TIME or sum(map(len, texts.values())) > TESTS_AT_A_TIME:
            yield pairs
            pairs, texts = [], {}
        if generation.answer not in texts:
            texts[generation.answer] = tests.of(generation)
        pairs.append((texts[generation.answer], generation.response))
    yield pairs


@contextmanager
def _strict_box(options: Options) -> Iterator[Verifier]:
    yield _plain(boxed_answer)


@contextmanager
def _choice(options: Options) -> Iterator[Verifier]:
    from respo.rewards.choice import choice_letter

    yield _plain(choice_letter)


OPENERS = {
    "math_verify": _math_verify,
    "strict_box": _strict_box,
    "choice": _choice,
    "code": _code,
}


def _plain(find: Callable[[str], str | None]) -> Verifier:
    """Make a verifier that compares what ``find`` returns with the answer as text."""

    def check(generations: Sequence[Generation], progress: Progress) -> list[Verdict]:
        found = [(generation.answer, find(generation.response)) for generation in generations]
        return [
            Verdict(answer == text, text, "unparsed" if text is None else "ok")
            for answer, text in found
        ]

    versions = environment()
    return Verifier(check, versions["respo"], versions)


class _Once:
    """Checks equal pairs of answer and response once, also far apart in a long file.

    It remembers the hashes and verdicts of the last ones only, so that its memory is bounded.
    """

    def __init__(self, check: Callable[[Sequence[Generation], Progress], list[Verdict]]) -> None:
        self._check = check
        self._verdicts: dict[bytes, Verdict] = {}

    def __call__(self, generations: Sequence[Generation], progress: Progress) -> list[Verdict]:
        keys = [_key(generation) for generation in generations]
        first = dict(zip(keys, generations, strict=True))
        new = {key: g for key, g in first.items() if key not in self._verdicts}
        known = len(generations) - len(new)
        checked = self._check(
            list(new.values()), lambda done, _: progress(known + done, len(generations))
        )
        self._verdicts |= zip(new, checked, strict=True)
        verdicts = [self._verdicts[key] for key in keys]
        for key in list(self._verdicts)[: max(0, len(self._verdicts) - REMEMBERED)]:
            del self._verdicts[key]  # the oldest
        return verdicts


def _key(generation: Generation) -> bytes:
    text = f"{len(generation.answer)} {generation.answer}{generation.response}"
    return blake2b(text.encode(), digest_size=16).digest()
