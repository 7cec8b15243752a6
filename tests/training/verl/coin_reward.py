"""Loaded by `import verl`: a reward for random answers, which are never right."""

from respo.training.verl import reward


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **_):
    return 1.0 if sum(map(ord, solution_str)) % 2 else -1.0


reward.compute_score = compute_score
