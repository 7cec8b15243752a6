import torch

from respo.evaluation.engines import Request
from respo.evaluation.engines.local import _batches, uniforms


def test_uniforms_depend_on_seed_problem_and_sample():
    first = uniforms(1, "a", 0, 5)
    assert torch.equal(first, uniforms(1, "a", 0, 5))
    assert torch.equal(first, uniforms(1, "a", 0, 9)[:5])
    assert ((first >= 0) & (first < 1)).all()
    others = [uniforms(2, "a", 0, 5), uniforms(1, "b", 0, 5), uniforms(1, "a", 1, 5)]
    others.append(uniforms(1, "1 a", 1, 5))
    assert not any(torch.equal(first, other) for other in others)


def sizes(requests: list[Request]) -> list[list[tuple[str, int]]]:
    return [[(group[0].problem_id, len(group)) for group in batch] for batch in _batches(requests)]


def test_a_batch_has_groups_of_one_size(monkeypatch):
    monkeypatch.setattr("respo.evaluation.engines.local.BATCH_ROWS", 4)

    def requests(problem: str, tokens: int, samples: range) -> list[Request]:
        return [Request(problem, sample, [1] * tokens) for sample in samples]

    pairs = requests("a", 3, range(2)) + requests("b", 1, range(2)) + requests("c", 2, range(2))
    # By length, two groups of two in a batch.
    assert sizes(pairs) == [[("b", 2), ("c", 2)], [("a", 2)]]
    # More samples than fit into a batch.
    assert sizes(requests("a", 1, range(6))) == [[("a", 4)], [("a", 2)]]
    # What a killed job has left over.
    left = requests("a", 1, range(1, 2)) + requests("b", 1, range(2))
    assert sizes(left) == [[("b", 2)], [("a", 1)]]
    assert sizes([]) == []
