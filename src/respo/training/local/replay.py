"""Routing replay: the updates of a rollout batch use the experts that the rollout used.

R3 replays the experts that the sampler chose (Ma et al., 2025), R2 those of the trainer's own
forward pass at the rollout's weights (Zheng et al., 2025). The router's probabilities of the
replayed experts stay differentiable. Both choices are the same but for near-ties: there the
rounding of two ways to compute the same thing decides.
"""

import dataclasses

import torch

from respo.policy import Policy
from respo.training.local.log_probs import check_sampler, fast_order, log_probs
from respo.training.local.responses import Responses


def with_trainer_routes(policy: Policy, responses: Responses, temperature: float) -> Responses:
    """Return the responses with pi_old and experts of a forward pass of the trainer (R2).

    Args:
        policy: at the weights that sampled the responses.
        responses: without routes.
        temperature: of the rollout.

    Raises:
        UserError: the sampler's log-probabilities are not the policy's.
    """
    nobody_B = torch.zeros_like(responses.truncated_B)
    order_B = fast_order(responses.length_B, nobody_B)
    responses = responses.select(order_B)
    own = log_probs(policy, responses, temperature, learning=0, record_routes=True)
    check_sampler(own.log_prob_BT, responses)
    old_log_prob_BT = torch.where(responses.mask_BT, own.log_prob_BT, 0.0)
    responses = dataclasses.replace(
        responses, old_log_prob_BT=old_log_prob_BT, routes_BTLK=own.routes_BTLK
    )
    return responses.select(order_B.argsort())
