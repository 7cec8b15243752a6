"""Majority vote over the answers that a problem's samples give."""

from collections import Counter
from collections.abc import Sequence


def majority_vote(answers: Sequence[str | None], correct: Sequence[bool]) -> bool:
    """Return whether the answer that most samples of one problem give is right.

    Answers are compared as text. Of equally frequent ones the first wins; it is right if the first
    sample that gives it is. A sample without an answer (None) does not vote, and without any vote
    the problem counts as wrong. (ReSPO, App. D.2.)

    Args:
        answers: of the samples, in their order.
        correct: whether each sample is correct.
    """
    votes = Counter(answer for answer in answers if answer is not None)
    if not votes:
        return False
    # Of equal counts `max` returns the one that was counted first.
    return correct[answers.index(max(votes, key=votes.__getitem__))]
