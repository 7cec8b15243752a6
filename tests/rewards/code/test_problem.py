import json

import pytest

from respo.rewards.code.problem import Case, read_problem


def test_both_kinds() -> None:
    tests = [{"input": "1\n", "output": "2"}, {"input": "", "output": ""}]
    text = json.dumps({"function": None, "tests": tests})
    assert read_problem(text) == (None, (Case("1\n", "2"), Case("", "")))
    assert read_problem(json.dumps({"function": "f", "tests": tests})).function == "f"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON"),
        ("[]", "not an object of `function` and `tests`"),
        ('{"tests": []}', "not an object of `function` and `tests`"),
        ('{"function": null, "tests": []}', "have no test"),
        ('{"function": null, "tests": {}}', "have no test"),
        ('{"function": "a.b", "tests": [1]}', "name the function 'a.b'"),
        ('{"function": 3, "tests": [1]}', "name the function 3"),
        ('{"function": null, "tests": [1]}', "two texts, input and output"),
        ('{"function": null, "tests": [{"input": ""}]}', "two texts, input and output"),
        ('{"function": null, "tests": [{"input": "", "output": 1}]}', "two texts"),
    ],
)
def test_no_tests(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_problem(text)
