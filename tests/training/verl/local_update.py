"""The gradient of a policy update in the local policy, to compare verl's engines with."""

import torch

from respo import objectives
from respo.policy import token_log_probs


class LocalUpdate:
    """A mini-batch of responses, right-padded after their prompts.

    Args:
        policy: with the weights before the update.
        ids_BT: prompts and responses.
        prompt_length_B, response_length_B: their tokens.
        advantage_B: their advantages.
        route_BTLK: the experts to be used, by layer, or None for the policy's own.
    """

    def __init__(
        self, policy, ids_BT, prompt_length_B, response_length_B, advantage_B, route_BTLK=None
    ):
        self.policy, self.ids_BT, self.advantage_B = policy, ids_BT, advantage_B
        self.mask_BT = torch.arange(int(response_length_B.max())) < response_length_B.unsqueeze(1)
        column_BT = prompt_length_B.unsqueeze(1) - 1 + torch.arange(self.mask_BT.shape[1])
        self.column_BT = column_BT.clamp(max=ids_BT.shape[1] - 2)
        self.routes_LBTK = None
        if route_BTLK is not None:
            self.routes_LBTK = route_BTLK.permute(2, 0, 1, 3).contiguous()

    def log_prob_BT(self):
        """Of the responses' tokens; 0 at others."""
        return self._log_prob_and_entropy()[0]

    def gradient(self, objective, old_log_prob_BT=None):
        """Of all weights by name; token mean of the mini-batch. Without old ones, on policy."""
        names = sorted(self.policy.weights)
        weights = [self.policy.weights[name].requires_grad_() for name in names]
        log_prob_BT, entropy_BT = self._log_prob_and_entropy()
        old_log_prob_BT = log_prob_BT.detach() if old_log_prob_BT is None else old_log_prob_BT
        coefficient_BT = objectives.coefficients(
            objective,
            (log_prob_BT.detach() - old_log_prob_BT).masked_fill(~self.mask_BT, 0.0),
            self.advantage_B,
            self.mask_BT,
            old_log_prob_BT,
            entropy_BT=entropy_BT,
        )
        weight_BT = objectives.token_weights(
            "token-mean",
            self.mask_BT,
            batch_tokens=int(self.mask_BT.sum()),
            batch_responses=len(self.mask_BT),
            max_response_tokens=self.mask_BT.shape[1],
        )
        loss = objectives.policy_loss(
            log_prob_BT, coefficient_BT, self.advantage_B, self.mask_BT, weight_BT
        )
        return dict(zip(names, torch.autograd.grad(loss, weights), strict=True))

    def grad_norm(self, *args):
        """The norm of that gradient."""
        return torch.cat([part.flatten() for part in self.gradient(*args).values()]).norm().item()

    def _log_prob_and_entropy(self):
        found = token_log_probs(self.policy, self.ids_BT, 1.0, routes_LBTK=self.routes_LBTK)
        return [
            each_BT.gather(1, self.column_BT).masked_fill(~self.mask_BT, 0.0) for each_BT in found
        ]
