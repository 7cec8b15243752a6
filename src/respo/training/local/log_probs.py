"""Log-probabilities of whole mini-batches, computed a few rows at a time."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from respo.cli import UserError
from respo.policy import Policy, token_log_probs
from respo.training.local.responses import Responses

# Rows per forward pass. On a CPU, 16 rows of similar length waste little on padding and their
# activations stay in the cache; a GPU wants few large kernels.
MICRO_BATCH_ROWS = {"cpu": 16, "cuda": 512}

# Mean difference per token, in nats, between the sampler's log-probabilities and the forward pass
# at the same weights. Rounding makes 1e-6; a forgotten temperature makes 1e-1.
SAMPLER_TOLERANCE = 1e-2


@dataclass(frozen=True)
class LogProbs:
    """What a forward pass over responses yields; the shapes fit `Responses`.

    Attributes:
        log_prob_BT: of the next tokens, nats, shape (B, T-1).
        entropy_BT: of the policy there, nats, shape (B, T-1).
        routes_BTLK: the experts chosen, int16, shape (B, T, L, K); None unless recorded.
    """

    log_prob_BT: Tensor
    entropy_BT: Tensor
    routes_BTLK: Tensor | None


def fast_order(length_B: Tensor, learns_B: Tensor) -> Tensor:
    """Return the rows, those with a gradient first, and by length, so that little is padding."""
    return (length_B + ~learns_B * (1 + length_B.max())).argsort(stable=True)


def log_probs(
    policy: Policy,
    responses: Responses,
    temperature: float,
    *,
    learning: int,
    entropy_gradient: bool = False,
    record_routes: bool = False,
    micro_batch_rows: int | None = None,
) -> LogProbs:
    """Run the policy over responses, on their recorded routes if they have any.

    Args:
        policy: what to run.
        responses: in the order of `fast_order`.
        temperature: that the logits are divided by.
        learning: how many rows, the first ones, get a gradient. The others are there for the
            metrics alone.
        entropy_gradient: whether the entropy of these rows gets one too.
        record_routes: whether to return the experts chosen.
        micro_batch_rows: rows per forward pass; does not change the result.
    """
    rows = micro_batch_rows or MICRO_BATCH_ROWS[policy.device.type]
    width = responses.ids_BT.shape[1]
    log_prob, entropy, routes = [], [], []
    for first, last, with_gradient in (
        (0, learning, True),
        (learning, len(responses.ids_BT), False),
    ):
        for start in range(first, last, rows):
            part = slice(start, min(start + rows, last))
            longest = int(responses.length_B[part].max())
            record: list[Tensor] | None = [] if record_routes else None
            with torch.set_grad_enabled(with_gradient):
                log_prob_BT, entropy_BT = token_log_probs(
                    policy,
                    responses.ids_BT[part, :longest],
                    temperature,
                    routes_LBTK=responses.routes_LBTK(part, longest),
                    record=record,
                    entropy_gradient=entropy_gradient,
                )
            log_prob.append(pad(log_prob_BT, (0, width - longest)))
            entropy.append(pad(entropy_BT, (0, width - longest)))
            if record is not None:
                routes_BTLK = torch.stack(record, 2).to(torch.int16)
                routes.append(pad(routes_BTLK, (0, 0, 0, 0, 0, width - longest)))
    return LogProbs(
        torch.cat(log_prob), torch.cat(entropy), torch.cat(routes) if record_routes else None
    )


def check_sampler(log_prob_BT: Tensor, responses: Responses) -> None:
    """Refuse responses whose log-probabilities are not those of the weights that sampled them.

    Raises:
        UserError: they differ by more than rounding.
    """
    difference_BT = (log_prob_BT - responses.old_log_prob_BT).abs()
    mean = float(difference_BT[responses.mask_BT].mean())
    # Not a comparison with `>`: NaN is told by the check of the loss.
    if mean > SAMPLER_TOLERANCE:
        raise UserError(
            f"the sampler's log-probabilities differ from the policy's by {mean:.2g} nats per "
            f"token with no update between; training on them would be wrong"
        )
