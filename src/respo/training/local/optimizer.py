"""AdamW on one vector that holds all weights of a policy."""

import dataclasses

import torch
from torch import Tensor
from torch.optim.adamw import adamw

from respo.policy import Policy

EPSILON = 1e-8


class AdamW:
    """torch's fused AdamW on a policy's weights, laid end to end in one vector.

    One vector makes clipping, the step and saving a single operation each. The functional form is
    used because constructing `torch.optim.AdamW` imports torch's compiler, which takes two seconds,
    longer than many runs' share of useful work.

    Attributes:
        policy: the policy to train; its weights are views of ``vector`` and require gradients.
        vector: all weights, in the order of `Policy.parameters`.
        exp_avg: first moment.
        exp_avg_sq: second moment.
        step_count: steps taken, a float32 scalar as torch wants it.
    """

    def __init__(
        self, policy: Policy, *, betas: tuple[float, float], weight_decay: float, clip: float
    ) -> None:
        names = sorted(policy.weights)
        self.vector = torch.cat([policy.weights[name].detach().flatten() for name in names])
        parts = self.vector.split([policy.weights[name].numel() for name in names])
        weights = {
            name: part.view(policy.weights[name].shape).requires_grad_()
            for name, part in zip(names, (part.detach() for part in parts), strict=True)
        }
        self.policy = dataclasses.replace(policy, weights=weights)
        self.exp_avg = torch.zeros_like(self.vector)
        self.exp_avg_sq = torch.zeros_like(self.vector)
        self.step_count = torch.zeros((), device=self.vector.device)
        self._beta1, self._beta2 = betas
        self._weight_decay = weight_decay
        self._clip = clip

    def gradient(self, loss: Tensor) -> Tensor:
        """Differentiate a loss with respect to ``vector``; zero if it depends on no weight."""
        if not loss.requires_grad:
            return torch.zeros_like(self.vector)
        parameters = self.policy.parameters()
        parts = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
        return torch.cat([part.flatten() for part in parts])

    def norm(self, gradient: Tensor) -> float:
        """Return the Euclidean norm of a gradient."""
        return torch.linalg.vector_norm(gradient).item()

    @torch.no_grad()
    def step(self, gradient: Tensor, norm: float, learning_rate: float) -> None:
        """Clip a gradient of the given norm and move the weights."""
        if norm > self._clip:
            gradient = gradient * (self._clip / norm)
        adamw(
            [self.vector],
            [gradient],
            [self.exp_avg],
            [self.exp_avg_sq],
            [],
            [self.step_count],
            fused=True,
            amsgrad=False,
            beta1=self._beta1,
            beta2=self._beta2,
            lr=learning_rate,
            weight_decay=self._weight_decay,
            eps=EPSILON,
            maximize=False,
        )

    def tensors(self) -> dict[str, Tensor]:
        """Return the weights, moments and step count by name; the tensors themselves."""
        return {
            "vector": self.vector,
            "exp_avg": self.exp_avg,
            "exp_avg_sq": self.exp_avg_sq,
            "step_count": self.step_count,
        }

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """Take over what `tensors` returned earlier."""
        for name, tensor in self.tensors().items():
            tensor.copy_(tensors[name])
