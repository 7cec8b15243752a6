import subprocess
import sys

import pytest

from respo.rewards import boxed_answer, last_box, strict_box

PROTOCOL = "rule of the paper (ReSPO, App. D.1): last 100 characters, last box, exact string"
REPORT = "public bug reports about boxed-answer verifiers"
HAND = "by hand from the documented rule"

CASES = [
    # response, gold, boxed answer, reward, origin
    (r"so \boxed{33} ... no, \boxed{34}", "34", "34", 1.0, REPORT),
    (r"so \boxed{33} ... no, \boxed{34}", "33", "34", -1.0, REPORT),
    (r"\boxed{33}" + "x" * 101, "33", None, -1.0, REPORT),
    (r"\boxed{33}" + "x" * 90, "33", "33", 1.0, PROTOCOL),  # begins exactly 100 from the end
    (r"\boxed{33}" + "x" * 91, "33", None, -1.0, PROTOCOL),  # its backslash is cut off
    (r"\boxed{33}" + "x" * 300, "33", None, -1.0, PROTOCOL),
    (r"\boxed{ 33 }", "33", " 33 ", -1.0, REPORT),
    (r"\boxed{033}", "33", "033", -1.0, REPORT),
    (r"\boxed{\text{33}}", "33", r"\text{33}", -1.0, REPORT),
    (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}", r"\frac{1}{2}", 1.0, REPORT),
    (r"\boxed{\{1,2\}}", r"\{1,2\}", r"\{1,2\}", 1.0, REPORT),
    (r"\boxed{[0,1\}}", r"[0,1\}", r"[0,1\}", 1.0, HAND),  # an escaped brace closes nothing
    (r"\boxed{a\\}", r"a\\", r"a\\", 1.0, HAND),  # a line break, then the closing brace
    (r"\boxed{3", "3", None, -1.0, REPORT),
    (r"\boxed{3\}", "3", None, -1.0, HAND),
    (r"\boxed{33} or \boxed{3", "33", None, -1.0, HAND),  # the last box is the one that counts
    (r"\boxed{\boxed{3}}", "3", "3", 1.0, HAND),  # the last opening is the inner one
    (r"\boxed{}", "", "", 1.0, HAND),
    (r"\boxed 33", "33", None, -1.0, HAND),
    (r"\boxed{3\\"[:-1], "3", None, -1.0, HAND),  # ends in the middle of an escape
    ("the answer is 33", "33", None, -1.0, HAND),
    ("", "33", None, -1.0, REPORT),
    (" \n\t ", "33", None, -1.0, REPORT),
    ("(" * 1_000_000, "33", None, -1.0, REPORT),
    ("\\boxed{" * 200_000, "33", None, -1.0, HAND),
]


@pytest.mark.parametrize(("response", "gold", "boxed", "reward", "origin"), CASES)
def test_case(response: str, gold: str, boxed: str | None, reward: float, origin: str) -> None:
    assert boxed_answer(response) == boxed, origin
    assert strict_box(response, gold) == reward, origin


def test_importing_the_rewards_is_light() -> None:
    code = (
        "import sys, respo.rewards, respo.rewards.workers;"
        "print({'sympy', 'math_verify', 'torch', 'numpy', 'pyarrow'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_the_last_box_of_a_whole_text():
    text = r"\boxed{33}" + 101 * "x"
    assert last_box(text) == "33"
    assert boxed_answer(text) is None
