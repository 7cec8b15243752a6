"""From log-ratios to coefficients: the one entry to all objectives."""

import torch
from torch import Tensor

from respo.objectives import registry
from respo.objectives.ratios import EXPONENTS, as_mask, clamp_exponent, count_clamped


@torch.no_grad()
def coefficients(
    name: str,
    log_ratio_BT: Tensor,
    advantage_B: Tensor,
    mask_BT: Tensor,
    old_log_prob_BT: Tensor | None = None,
    **parameters: float | None,
) -> Tensor:
    """Return the coefficient c of every token, detached.

    Args:
        name: the objective, one of `objective_names()`.
        log_ratio_BT: log pi - log pi_old in nats, float32 or float64. Masked positions may hold
            anything; NaN at a valid token comes out as NaN.
        advantage_B: one advantage per response.
        mask_BT: 1 at the tokens of the response, 0 elsewhere; bool, int or float.
        old_log_prob_BT: log pi_old in nats, for the objectives that depend on it.
        parameters: of the objective; the published defaults where left out.

    Returns:
        c, shape (B, T), dtype of `log_ratio_BT`, exactly 0 at masked tokens.

    Raises:
        ValueError: unknown objective or parameter, a value outside its range, or tensors whose
            shape or dtype does not fit.
    """
    values = registry.check_parameters(name, parameters)
    mask_BT = _check(log_ratio_BT, mask_BT)
    if advantage_B.shape != log_ratio_BT.shape[:1]:
        raise ValueError(
            f"advantage_B has shape {tuple(advantage_B.shape)}, expected ({len(log_ratio_BT)},)"
        )
    inputs = {"mask_BT": mask_BT, "advantage_B1": advantage_B.to(log_ratio_BT.dtype).unsqueeze(1)}
    wanted = registry.get(name).inputs
    for key in wanted:
        if key in EXPONENTS:
            inputs[key] = clamp_exponent(EXPONENTS[key](log_ratio_BT, mask_BT))
    if "old_log_prob_BT" in wanted:
        if old_log_prob_BT is None or old_log_prob_BT.shape != log_ratio_BT.shape:
            raise ValueError(f"{name} needs old_log_prob_BT with the shape of log_ratio_BT")
        inputs["old_log_prob_BT"] = torch.where(mask_BT, old_log_prob_BT, 0.0)
    coefficient = registry.get(name).function(*(inputs[key] for key in wanted), **values)
    return torch.where(mask_BT, coefficient.to(log_ratio_BT.dtype), 0.0)


@torch.no_grad()
def clamped_exponents(name: str, log_ratio_BT: Tensor, mask_BT: Tensor) -> int:
    """Return how often the clamp before exp bites in this objective.

    Counted are tokens for a token-level objective and responses for a sequence-level one.
    Arguments and errors as in `coefficients`.
    """
    mask_BT = _check(log_ratio_BT, mask_BT)
    wanted = [key for key in registry.get(name).inputs if key in EXPONENTS]
    return sum(count_clamped(EXPONENTS[key](log_ratio_BT, mask_BT)) for key in wanted)


def kernel(name: str, log_w: Tensor, sign: int, **parameters: float | None) -> Tensor:
    """Return c against log W for a response of one token, to draw an objective.

    Args:
        name: the objective.
        log_w: log W in nats, shape (points,), float32 or float64.
        sign: +1 or -1, the sign of the advantage.
        parameters: of the objective.

    Returns:
        c, shape (points,). With one token the ratio of the token, of the response and their
        geometric mean are the same number, so all objectives share this axis.
    """
    if sign not in (1, -1):
        raise ValueError(f"sign must be +1 or -1, not {sign!r}")
    advantage = torch.full_like(log_w, sign)
    log_ratio = log_w.unsqueeze(1)
    mask = torch.ones_like(log_ratio, dtype=torch.bool)
    return coefficients(name, log_ratio, advantage, mask, None, **parameters).squeeze(1)


def _check(log_ratio_BT: Tensor, mask_BT: Tensor) -> Tensor:
    # bfloat16 is spaced by 0.8 % at 1, coarser than a sequence-level clip range.
    if log_ratio_BT.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"log_ratio_BT must be float32 or float64, not {log_ratio_BT.dtype}")
    return as_mask(mask_BT, log_ratio_BT.shape)
