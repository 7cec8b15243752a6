"""The training reward as verl calls it.

    reward.custom_reward_function.path=pkg://respo.training.verl.reward
    reward.custom_reward_function.name=compute_score

The length penalty is added by verl's own reward manager `dapo`.
"""

from typing import Any

from respo.rewards import strict_box


def compute_score(
    data_source: str, solution_str: str, ground_truth: str, **_: Any
) -> dict[str, float]:
    """Return +1 or -1 by the strict-box rule (`score`), and whether it is correct (`acc`).

    Args:
        data_source: not looked at; one rule for all data.
        solution_str: the response.
        ground_truth: the answer.
    """
    score = strict_box(solution_str, ground_truth)
    return {"score": score, "acc": float(score > 0)}
