"""Coefficients of responses of one token, to look at an objective.

With one token the ratio of the token, of the response and their geometric mean are the same number,
so all objectives share these axes. Advantages are +1 or -1, the entropy is `ENTROPY`, and what an
objective adapts to the mini-batch stands where an empty one leaves it: at its start.
"""

import torch
from torch import Tensor

from respo.objectives.coefficients import batch_sums, coefficients

# Where the axis is log W alone, pi_old of objectives that depend on it.
PROB_OLD = 0.1
ENTROPY = 1.0  # nats


def kernel(name: str, log_w: Tensor, sign: int, **parameters: float | None) -> Tensor:
    """Return c against log W.

    Args:
        name: the objective.
        log_w: log W in nats, shape (points,), float32 or float64.
        sign: +1 or -1, the sign of the advantage.
        parameters: of the objective.

    Returns:
        c, shape (points,). pi_old is `PROB_OLD` for every point.
    """
    log_old = torch.full_like(log_w, PROB_OLD).log()
    return _one_token(name, log_w, log_old, sign, **parameters)


def surface(
    name: str, prob_old: Tensor, prob: Tensor, sign: int, **parameters: float | None
) -> Tensor:
    """Return c against pi_old and pi. ASPO, Fig. 4.

    Args:
        name: the objective.
        prob_old: pi_old in (0, 1], shape (columns,), float32 or float64.
        prob: pi in (0, 1], shape (rows,), same dtype.
        sign: +1 or -1, the sign of the advantage.
        parameters: of the objective.

    Returns:
        c, shape (rows, columns).
    """
    log_prob_RC, log_old_RC = torch.meshgrid(prob.log(), prob_old.log(), indexing="ij")
    log_ratio = (log_prob_RC - log_old_RC).flatten()
    c = _one_token(name, log_ratio, log_old_RC.flatten(), sign, **parameters)
    return c.view(len(prob), len(prob_old))


def _one_token(
    name: str, log_ratio: Tensor, log_old: Tensor, sign: int, **parameters: float | None
) -> Tensor:
    if sign not in (1, -1):
        raise ValueError(f"sign must be +1 or -1, not {sign!r}")
    log_ratio_BT, old_log_prob_BT = log_ratio.unsqueeze(1), log_old.unsqueeze(1)
    advantage_B = torch.full_like(log_ratio, sign)
    mask_BT = torch.ones_like(log_ratio_BT, dtype=torch.bool)
    entropy_BT = torch.full_like(log_ratio_BT, ENTROPY)
    none = slice(0)
    sums = batch_sums(
        name,
        log_ratio_BT[none],
        advantage_B[none],
        mask_BT[none],
        old_log_prob_BT[none],
        entropy_BT=entropy_BT[none],
        **parameters,
    )
    return coefficients(
        name,
        log_ratio_BT,
        advantage_B,
        mask_BT,
        old_log_prob_BT,
        entropy_BT=entropy_BT,
        batch_sums=sums,
        **parameters,
    ).squeeze(1)
