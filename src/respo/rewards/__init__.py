"""Verifiers: what a response is worth. Imports nothing else of the project.

The rules here are plain string functions. Mathematical equivalence needs sympy, which can hang on a
short answer, so it runs in killable processes only: see `respo.rewards.workers`.
"""

from respo.rewards.overlong import overlong_penalty
from respo.rewards.strict_box import boxed_answer, last_box, strict_box

__all__ = ["boxed_answer", "last_box", "overlong_penalty", "strict_box"]
