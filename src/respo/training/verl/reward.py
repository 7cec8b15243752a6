"""The training reward as verl calls it: in several processes, from many threads of each.

    reward.custom_reward_function.path=pkg://respo.training.verl.reward
    reward.custom_reward_function.name=compute_score
    +reward.custom_reward_function.reward_kwargs.verifier=math_verify

The length penalty is added by verl's own reward manager `dapo`. A reward that takes long, or hangs
until its limit, holds up neither the others nor the event loop: verl calls functions like this one,
that are not coroutines, in a pool of threads. Each of verl's processes for rewards (8, see
`reward.num_workers`) starts up to 4 more that compare answers, of about 100 MB each, or runs up to
4 programs.
"""

from typing import Any

from respo.rewards.training import training_reward


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    verifier: str = "strict_box",
    **_: Any,
) -> dict[str, float]:
    """Return +1 or -1 (`score`), and whether the response is correct (`acc`).

    Args:
        data_source: not looked at; one rule for all data.
        solution_str: the response.
        ground_truth: the answer; of a code problem its tests.
        verifier: see `respo.rewards.training.training_reward`.
    """
    score = training_reward(verifier, ground_truth, solution_str)
    return {"score": score, "acc": float(score > 0)}
