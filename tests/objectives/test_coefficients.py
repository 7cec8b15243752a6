"""The entry to all objectives: the tensors it hands on and those it refuses."""

import pytest
import torch

from respo.objectives import coefficients, kernel, registry


def test_an_objective_may_ask_for_old_log_probs(monkeypatch):
    def weighted(log_ratio_BT, old_log_prob_BT):
        return old_log_prob_BT.sum(dim=1, keepdim=True)

    monkeypatch.setitem(registry._OBJECTIVES, "weighted", registry._describe("weighted", weighted))
    log_ratio, advantage, mask = torch.zeros(1, 2), torch.ones(1), torch.tensor([[1, 0]])
    with pytest.raises(ValueError, match="weighted needs old_log_prob_BT"):
        coefficients("weighted", log_ratio, advantage, mask)
    old = torch.tensor([[-0.5, float("nan")]])
    c = coefficients("weighted", log_ratio, advantage, mask, old)
    torch.testing.assert_close(c, torch.tensor([[-0.5, 0.0]]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log_ratio_BT": torch.zeros(2, 3, dtype=torch.bfloat16)}, "float32 or float64"),
        ({"log_ratio_BT": torch.zeros(2, 3, dtype=torch.int64)}, "float32 or float64"),
        ({"mask_BT": torch.ones(2, 4)}, r"mask_BT has shape \(2, 4\)"),
        ({"mask_BT": torch.full((2, 3), 0.5)}, "only 0 and 1"),
        ({"mask_BT": torch.full((2, 3), float("nan"))}, "only 0 and 1"),
        ({"advantage_B": torch.ones(3)}, r"advantage_B has shape \(3,\), expected \(2,\)"),
        ({"advantage_B": torch.ones(2, 3)}, "advantage_B has shape"),
        ({"log_ratio_BT": torch.zeros(2), "mask_BT": torch.ones(2)}, "mask_BT has shape"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(change, message):
    tensors = {
        "log_ratio_BT": torch.zeros(2, 3),
        "advantage_B": torch.ones(2),
        "mask_BT": torch.ones(2, 3),
    }
    with pytest.raises(ValueError, match=message):
        coefficients("grpo", **(tensors | change))


def test_kernel_refuses_other_signs():
    with pytest.raises(ValueError, match=r"sign must be \+1 or -1"):
        kernel("grpo", torch.zeros(3), 0)
