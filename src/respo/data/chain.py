"""The task of the laptop study: `3+5*2-7=`, evaluated from left to right modulo 10.

A full solution reasons step by step, `3+5=8;8*2=6;6-7=9;\\boxed{9}`; a direct one only guesses,
`\\boxed{9}`. Both are short enough for a policy of 100,000 parameters, and reasoning pays.
"""

import hashlib
import random
from collections.abc import Iterator

OPERATORS = "+-*"
# One prompt in four is held out, by its hash: training sets and benchmarks cannot overlap,
# whatever their seeds, and neither needs to know of the other.
HELD_OUT_SHARE = 4


def prompt(rng: random.Random, operators: int) -> str:
    """Draw a prompt with the given number of operators."""
    digits = [str(rng.randrange(10)) for _ in range(operators + 1)]
    signs = [rng.choice(OPERATORS) for _ in range(operators)]
    return (
        digits[0]
        + "".join(sign + digit for sign, digit in zip(signs, digits[1:], strict=True))
        + "="
    )


def steps(text: str) -> Iterator[tuple[str, str]]:
    """Yield the operators and right operands of a prompt, in order."""
    body = text.removesuffix("=")
    yield from zip(body[1::2], body[2::2], strict=True)


def apply(left: int, operator: str, right: int) -> int:
    """Combine two digits modulo 10."""
    result = {"+": left + right, "-": left - right, "*": left * right}[operator]
    return result % 10


def answer(text: str) -> str:
    """Evaluate a prompt: one digit."""
    value = int(text[0])
    for operator, digit in steps(text):
        value = apply(value, operator, int(digit))
    return str(value)


def demonstration(text: str, rng: random.Random, direct: float, corrupted: float) -> str:
    """Write a response to learn from.

    With probability ``direct`` it gives the right answer without reasoning. Otherwise it reasons,
    and each step's result is replaced by a random digit with probability ``corrupted``; later steps
    go on from the replaced digit. So the warm-started policy knows both forms and errs in both.
    """
    if rng.random() < direct:
        return f"\\boxed{{{answer(text)}}}"
    value = int(text[0])
    written = []
    for operator, digit in steps(text):
        result = apply(value, operator, int(digit))
        if rng.random() < corrupted:
            result = rng.randrange(10)
        written.append(f"{value}{operator}{digit}={result};")
        value = result
    return "".join(written) + f"\\boxed{{{value}}}"


def is_held_out(text: str) -> bool:
    """Tell whether a prompt belongs to the benchmarks; all others are for training."""
    return hashlib.sha256(text.encode()).digest()[0] % HELD_OUT_SHARE == 0


def distinct_prompts(
    least: int, greatest: int, rows: int, seed: int, *, held_out: bool
) -> list[str]:
    """Draw distinct prompts of one side of the split, with uniformly drawn numbers of operators.

    Raises:
        ValueError: there are not enough distinct prompts.
    """
    rng = random.Random(seed)
    found: dict[str, None] = {}
    misses = 0
    while len(found) < rows:
        text = prompt(rng, rng.randint(least, greatest))
        if text in found or is_held_out(text) != held_out:
            misses += 1
            # So many in a row mean that there are none left (or too few to be worth the search).
            if misses > 20_000:
                raise ValueError(f"rows: only {len(found)} distinct prompts were found of {rows}")
            continue
        found[text] = None
        misses = 0
    return list(found)
