import pytest

from respo.statistics import majority_vote

# All by hand from the rule: the most frequent answer, ties to the first, judged by its first giver.


@pytest.mark.parametrize(
    ("answers", "correct", "right"),
    [
        (["7"], [True], True),
        (["7"], [False], False),
        (["7", "8", "8"], [True, False, False], False),
        (["7", "8", "8"], [False, True, True], True),
        (["7", "8"], [True, False], True),
        (["7", "8"], [False, True], False),
        (["8", "7", "7", "8"], [False, True, True, False], False),
        # Without a box: no vote.
        ([None, None, "7"], [False, False, True], True),
        ([None, None], [False, False], False),
        # Right without a box, in the eyes of another verifier: still no vote.
        ([None, None], [True, True], False),
        # Texts that mean the same are different votes.
        (["1/2", "0.5", "3", "3"], [True, True, False, False], False),
        # An empty box is an answer.
        (["", "", "7"], [False, False, True], False),
        # The same text, judged differently (a time-out): the first counts.
        (["7", "7"], [False, True], False),
        (["7", "7"], [True, False], True),
    ],
)
def test_vote(answers: list[str | None], correct: list[bool], right: bool) -> None:
    assert majority_vote(answers, correct) is right
