from collections.abc import Callable

import pytest
import torch

from respo.policy import Policy
from respo.training.local.optimizer import AdamW


@pytest.mark.parametrize("clip", [0.05, 100.0])
def test_equals_torch(make_policy: Callable[..., Policy], clip: float) -> None:
    policy = make_policy()
    ours = AdamW(policy, betas=(0.9, 0.95), weight_decay=0.1, clip=clip)
    weights = [w.clone().requires_grad_() for w in policy.parameters()]
    theirs = torch.optim.AdamW(weights, lr=0.0, betas=(0.9, 0.95), weight_decay=0.1)
    generator = torch.Generator().manual_seed(1)
    for step in range(5):
        target = [torch.randn(w.shape, generator=generator) for w in weights]

        def loss(
            parameters: list[torch.Tensor], target: list[torch.Tensor] = target
        ) -> torch.Tensor:
            pairs = zip(parameters, target, strict=True)
            return sum(((w - t) ** 2).mean() for w, t in pairs)  # type: ignore[return-value]

        gradient = ours.gradient(loss(ours.policy.parameters()))
        norm = ours.norm(gradient)
        ours.step(gradient, norm, 0.01 * (step + 1))
        theirs.zero_grad()
        loss(weights).backward()
        expected = torch.nn.utils.clip_grad_norm_(weights, clip)
        for group in theirs.param_groups:
            group["lr"] = 0.01 * (step + 1)
        theirs.step()
        assert norm == pytest.approx(expected.item(), rel=1e-5)
    for mine, his in zip(ours.policy.parameters(), weights, strict=True):
        torch.testing.assert_close(mine, his, atol=2e-6, rtol=1e-5)


def test_the_given_policy_is_left_alone(make_policy: Callable[..., Policy]) -> None:
    policy = make_policy()
    before = [w.clone() for w in policy.parameters()]
    optimizer = AdamW(policy, betas=(0.9, 0.999), weight_decay=0.0, clip=1.0)
    optimizer.step(torch.ones_like(optimizer.vector), 1.0, 0.1)
    assert all(map(torch.equal, before, policy.parameters()))
    assert not any(map(torch.equal, before, optimizer.policy.parameters()))


def test_a_loss_without_gradient_gives_zero(make_policy: Callable[..., Policy]) -> None:
    optimizer = AdamW(make_policy(), betas=(0.9, 0.999), weight_decay=0.0, clip=1.0)
    gradient = optimizer.gradient(torch.tensor(1.0))
    assert gradient.shape == optimizer.vector.shape
    assert not gradient.any()
