"""What is measured at each policy update, and the two tables it ends in."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from respo.objectives import (
    LOG_W_EDGES,
    SIGNS,
    branch_sums,
    clamped_exponents,
    coefficient_metrics,
    coefficient_sums,
    ratio_metrics,
    ratio_sums,
    sequence_log_weight,
)
from respo.training.local.responses import Responses

QUANTILES = (5, 25, 50, 75, 95)
INTEGERS = ("update", "rollout_batch")
# What is not in `measure`: reference_kl, the mean over valid tokens of the k3 estimate of the KL
# divergence from the initial weights, nats (NaN without a KL loss); grad_norm, before clipping;
# dropped_groups, the share of the groups sampled for the rollout batch that dynamic sampling left
# out (NaN without it); tokens_per_second, response tokens learned from by wall time; seconds, wall
# time with the update's share of sampling.
METRICS = (
    *INTEGERS,
    "score",
    "log_ratio_mean",
    *(f"log_ratio_q{percent:02d}" for percent in QUANTILES),
    "clip_fraction_pos",
    "clip_fraction_neg",
    "coefficient_mean_pos",
    "coefficient_mean_neg",
    "ratio_mean_pos",
    "ratio_mean_neg",
    "clamped",
    "entropy",
    "approx_kl",
    "reference_kl",
    "grad_norm",
    "response_length",
    "capped_share",
    "repetition",
    "tokens_per_second",
    "zero_advantage_groups",
    "dropped_groups",
    "seconds",
)
BRANCH_SUMS = {"responses": pa.int64(), "coefficient_mass": pa.float64(), "tokens": pa.int64()}


@torch.no_grad()
def measure(
    responses: Responses,
    objective: str,
    *,
    log_ratio_BT: Tensor,
    coefficient_BT: Tensor,
    entropy_BT: Tensor,
) -> dict[str, float]:
    """Return the metrics of a mini-batch that follow from its tensors.

    The score is the mean reward, length penalty included. Log W is taken per response, unclamped.
    Entropy and approximate KL (in nats) are means over all valid tokens. The metrics by sign of the
    advantage are NaN where no response has that sign; their means are over tokens, but the mean
    ratio is over responses, of the mean over the response's tokens (ASPO, Fig. 3).

    Args:
        responses: the mini-batch, its rows in any order.
        objective: name of the objective.
        log_ratio_BT: log pi - log pi_old in nats; this and the following fit `Responses.mask_BT`.
        coefficient_BT: coefficients of the tokens.
        entropy_BT: entropies of the policy at the tokens, nats.
    """
    mask_BT = responses.mask_BT
    log_weight_B = sequence_log_weight(log_ratio_BT, mask_BT)
    quantiles = np.percentile(log_weight_B.cpu().numpy(), QUANTILES).tolist()
    names = [f"log_ratio_q{percent:02d}" for percent in QUANTILES]
    return {
        "score": responses.reward_B.mean().item(),
        "log_ratio_mean": log_weight_B.mean().item(),
        **dict(zip(names, quantiles, strict=True)),
        **coefficient_metrics(coefficient_sums(coefficient_BT, responses.advantage_B, mask_BT)),
        **ratio_metrics(ratio_sums(responses.advantage_B, mask_BT, log_ratio_BT)),
        "clamped": float(clamped_exponents(objective, log_ratio_BT, mask_BT)),
        "entropy": _token_mean(entropy_BT, mask_BT),
        "approx_kl": _token_mean(-log_ratio_BT, mask_BT),
        "response_length": responses.response_length_B.double().mean().item(),
        "capped_share": responses.truncated_B.double().mean().item(),
        "repetition": responses.repetition_B.mean().item(),
        "zero_advantage_groups": responses.equal_reward_B.double().mean().item(),
    }


def branches(responses: Responses, *, log_ratio_BT: Tensor, coefficient_BT: Tensor) -> Tensor:
    """Return sums by kind (`BRANCH_SUMS`), sign and bin of log W, shape (3, 2, bins), float64."""
    sums = branch_sums(coefficient_BT, responses.advantage_B, responses.mask_BT, log_ratio_BT)
    return torch.stack([sums[name].double() for name in BRANCH_SUMS]).cpu()


def metrics_table(rows: Sequence[dict[str, float]]) -> pa.Table:
    """Return one row per update; `update` and `rollout_batch` as int32, all else as float64."""
    return pa.table(
        {
            name: pa.array(
                [row[name] for row in rows], pa.int32() if name in INTEGERS else pa.float64()
            )
            for name in METRICS
        }
    )


def branches_table(rows: Sequence[dict[str, float]], branches_USKN: Tensor) -> pa.Table:
    """Return one row per update, sign and bin.

    Args:
        rows: the metrics, one per update.
        branches_USKN: what `branches` returned for each update, stacked.
    """
    updates, _, signs, bins = branches_USKN.shape
    each = signs * bins
    keys = {
        name: pa.array(np.repeat([int(row[name]) for row in rows], each), pa.int32())
        for name in INTEGERS
    }
    keys["sign"] = pa.array(np.tile(np.repeat(SIGNS, bins), updates).tolist(), pa.string())
    keys["bin"] = pa.array(np.tile(np.arange(bins), updates * signs), pa.int32())
    sums = {
        name: pa.array(branches_USKN[:, index].flatten().numpy()).cast(kind)
        for index, (name, kind) in enumerate(BRANCH_SUMS.items())
    }
    return pa.table({**keys, **sums})


def no_branches() -> Tensor:
    """Return the sums of no update at all, shape (0, 3, 2, bins)."""
    return torch.zeros((0, len(BRANCH_SUMS), len(SIGNS), len(LOG_W_EDGES) - 1), dtype=torch.float64)


def _token_mean(value_BT: Tensor, mask_BT: Tensor) -> float:
    return value_BT[mask_BT].double().mean().item()
