"""Verdicts on programs: run in a sandbox on the tests of a problem, as LiveCodeBench defines them.

`CodePool` is the way in. What the sandbox keeps in, and what it does not, is in `docs/sandbox.md`.
"""

from respo.rewards.code.pool import CodePool
from respo.rewards.code.program import last_program

__all__ = ["CodePool", "last_program"]
