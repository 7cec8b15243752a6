"""GRPO without importance sampling is plain policy gradient on stale data."""

import pytest
import torch

from respo.objectives import kernel


@pytest.mark.parametrize("spread", [0.02, 0.3, 1.5])
def test_gradient_is_that_of_the_likelihood(lab, spread):
    """ASPO, Sec. 4.2: eq. 2 with every weight 1."""
    batch = lab.make_batch(spread=spread)
    advantage_B1 = batch.advantage_B.unsqueeze(1)
    lab.assert_gradient(batch, "grpo_no_is", lambda log_prob_BT: advantage_B1 * log_prob_BT)


@pytest.mark.parametrize("sign", [1, -1])
def test_one_everywhere(sign):
    assert (kernel("grpo_no_is", torch.tensor([-1e3, -1.0, 0.0, 1.0, 1e3]), sign) == 1).all()
