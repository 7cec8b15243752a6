import pytest

from respo.rewards.code.program import last_program

LIVECODEBENCH = "rule of LiveCodeBench's extract_code for chat models"

CASES = [
    ("Text\n```python\nprint(1)\n```\nmore", "print(1)", LIVECODEBENCH),
    ("```\nprint(1)\n```", "print(1)", LIVECODEBENCH),
    ("```py\na\n```\nno:\n```python\nb\nc\n```", "b\nc", LIVECODEBENCH),
    ("  ```python\n  print(1)\n  ```", "  print(1)", LIVECODEBENCH),
    ("```python\r\nprint(1)\r\n```", "print(1)\r", LIVECODEBENCH),
    ("<think>\n```python\na\n```\n</think>\nnone", "a", LIVECODEBENCH),
    ("```python\na\n```\nAgain:\n```python\nb", "Again:", LIVECODEBENCH),
    ("````\na\n````", "a", LIVECODEBENCH),
    ("", None, LIVECODEBENCH),
    ("print(1)", None, LIVECODEBENCH),
    ("```python\nprint(1)", None, LIVECODEBENCH),
    ("```print(1)```", None, LIVECODEBENCH),
    ("```\n \n```", None, "a blank program is none"),
    ("```\n```", None, "a blank program is none"),
]


@pytest.mark.parametrize(("response", "program", "origin"), CASES)
def test_last_program(response: str, program: str | None, origin: str) -> None:
    assert last_program(response) == program, origin
