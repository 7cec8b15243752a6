"""The reward as verl calls it: by name, with what it knows of the response."""

import pytest

from respo.training.verl.reward import compute_score


@pytest.mark.parametrize(
    ("response", "score", "correct"),
    [(r"so \boxed{33}", 1.0, 1.0), (r"so \boxed{033}", -1.0, 0.0), ("33", -1.0, 0.0)],
)
def test_the_strict_box_rule(response, score, correct):
    found = compute_score(
        data_source="respo", solution_str=response, ground_truth="33", extra_info={"index": 0}
    )
    assert found == {"score": score, "acc": correct}
