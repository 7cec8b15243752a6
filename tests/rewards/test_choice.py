"""The letter of a response to a multiple-choice question; values by the rule in the module."""

import time

import pytest

from respo.rewards.choice import choice_letter


@pytest.mark.parametrize(
    ("response", "letter"),
    [
        # Cases from public bug reports.
        ("Answer: (B)", "B"),
        ("**B**", "B"),
        (r"\boxed{\text{B}}", "B"),
        ("A good idea is C", None),
        # Boxes.
        (r"So \boxed{B}.", "B"),
        (r"\boxed{b}", "B"),
        (r"\boxed{(B)}", "B"),
        (r"\boxed{B. the mitochondrion}", "B"),
        (r"\boxed{\textbf{(J)}}", "J"),
        (r"\boxed{\text{B. } x^{2}}", "B"),
        (r"$$\boxed{\mathrm{C}}$$", "C"),
        (r"\boxed{Option D}", "D"),
        (r"\boxed{ E }", "E"),
        (r"\boxed{A}", "A"),
        (r"\boxed{A good idea}", None),
        (r"\boxed{Energy}", None),
        (r"\boxed{42}", None),
        (r"\boxed{K}", None),
        (r"\boxed{}", None),
        (r"\boxed{B", None),
        # Phrases.
        ("The answer is B.", "B"),
        ("the correct answer is **(D)**.", "D"),
        ("**Answer:** C", "C"),
        ("Final Answer:\n\nC", "C"),
        ("The answer is: $\\text{G}$", "G"),
        ("The correct option is (A).", "A"),
        ("The answer is option H, since ...", "H"),
        ("The answer is A because it is.", "A"),
        ("The answer is A good idea.", None),
        ("The answer is I think", None),
        ("The answer is I'd say", None),
        ("The answer is not B.", None),
        ("The answer is Brazil.", None),
        ("The answer is K.", None),
        ("(C) is the correct choice.", "C"),
        # Alone.
        ("B", "B"),
        ("(B).", "B"),
        ("B\n\nIt is the only one that fits, since A is too small.", "B"),
        ("B) the mitochondrion", "B"),
        ("A. one\nB. two", None),
        # The last statement wins.
        (r"The answer is A. No: \boxed{C}", "C"),
        (r"\boxed{A}? Wait, the answer is D.", "D"),
        (r"\boxed{A} and \boxed{B}", "B"),
        (r"The answer is (B), that is, \boxed{42}.", "B"),
        ("The answer is A.\n\nThe answer is A or B.", None),
        # Several are none.
        (r"\boxed{B, C}", None),
        (r"\boxed{\text{B and C}}", None),
        ("The answer is (B) or (C).", None),
        ("The answer is B, C, and D.", None),
        ("The answer is B, A being too small.", "B"),
        # Reasoning.
        ("<think>The answer is A.</think>\nThe answer is B.", "B"),
        ("so the answer is A.\n</think>\n\n\\boxed{C}", "C"),
        ("The answer is A.</think>I do not know.", None),
        ("<think>The answer is A. Or", None),
        # Nothing.
        ("", None),
        (" \n ", None),
        ("I do not know.", None),
    ],
)
def test_letter(response, letter):
    assert choice_letter(response) == letter


@pytest.mark.parametrize(
    "part", ["(", r"\boxed{", r"\boxed{x{}", "answer is ", "A. ", "\n", "answer: (((", "B is the "]
)
def test_a_megabyte_takes_no_time(part):
    start = time.process_time()
    choice_letter(part * (1_000_000 // len(part)))
    assert time.process_time() - start < 3
