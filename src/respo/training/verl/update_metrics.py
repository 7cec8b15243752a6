"""What is measured at each policy update of a verl run, for `respo.training.verl.update_log`.

A row has the columns of the local trainer's metrics that a training worker knows, with the same
meaning, and:

rollout_batch, mini_batch   which update it is: verl's step, and the mini-batch of it, from 1 on
responses, tokens           of the mini-batch on all ranks; tokens are valid ones
branches                    by kind, sign of the advantage and bin of log W, see `branch_sums`
update_seconds              wall time of the update alone, without sampling
ended                       when the update was over, Unix time

The score and the share of groups without advantage are those of the mini-batch, whose groups verl
may have spread over several: `zero_advantage_groups` is the share of responses with advantage 0.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np
import torch
from torch import Tensor

from respo.objectives import (
    LOG_W_EDGES,
    SIGNS,
    coefficient_metrics,
    kl_loss,
    ratio_metrics,
    sequence_log_weight,
)
from respo.training.local.metrics import BRANCH_SUMS, QUANTILES
from respo.training.local.responses import repetition
from respo.training.verl.mini_batch import MicroBatch
from respo.training.verl.update_log import Row

# A key for each, in `Tally.sums`.
ENTROPY, REFERENCE_KL = "entropy", "reference_kl"
BINS = len(LOG_W_EDGES) - 1


@dataclass
class Tally:
    """A rank's part of a mini-batch, as sums over tokens and a column for each fact of responses.

    `step`: the step of verl for whose rollout batch the response was asked for; `score`: its
    reward, NaN where the batch has none; `capped`: it does not end with an end-of-sequence token.
    """

    sums: dict[str, float] = field(default_factory=dict)
    columns: dict[str, list[float]] = field(default_factory=dict)

    def add(self, part: MicroBatch, data: Any, ends: set[int]) -> None:
        """Add a micro-batch on which our policy loss has been called.

        Args:
            part: what the loss left.
            data: the micro-batch as verl has it; tensors are nested.
            ends: the end-of-sequence tokens.
        """
        rows = part.rows
        assert rows is not None
        sums = dict(part.sums)
        one_B = torch.ones(len(rows.advantage_B), device=rows.advantage_B.device)
        if part.entropy_BT is not None:
            sums[ENTROPY] = float(part.entropy_BT.double().masked_fill(~rows.mask_BT, 0.0).sum())
        if "ref_log_prob" in data:
            reference_BT = data["ref_log_prob"].to_padded_tensor(0.0)
            log_prob_BT = rows.old_log_prob_BT + rows.log_ratio_BT
            sums[REFERENCE_KL] = float(kl_loss(log_prob_BT, reference_BT, rows.mask_BT, one_B))
        responses = [response.tolist() for response in data["responses"].unbind()]
        columns: dict[str, list[float]] = {
            "step": _steps(data, len(responses)),
            "log_weight": sequence_log_weight(rows.log_ratio_BT, rows.mask_BT).tolist(),
            "advantage": rows.advantage_B.tolist(),
            "score": _scores(data, len(responses)),
            "length": rows.mask_BT.sum(dim=1).tolist(),
            "capped": [float(ends.isdisjoint(response[-1:])) for response in responses],
            "repetition": [repetition(response) for response in responses],
        }
        for name, value in sums.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        # Responses that verl has added to make numbers divisible have no valid tokens.
        kept = [length > 0 for length in columns["length"]]
        for name, column in columns.items():
            self.columns.setdefault(name, []).extend(compress(column, kept))


def join(parts: Sequence[Tally]) -> Tally:
    """Return the tally of all ranks together."""
    whole = Tally()
    for part in parts:
        for name, value in part.sums.items():
            whole.sums[name] = whole.sums.get(name, 0.0) + value
        for name, column in part.columns.items():
            whole.columns.setdefault(name, []).extend(column)
    return whole


def measure(whole: Tally) -> Row:
    """Return the metrics that follow from the tally of a whole mini-batch."""
    sums = whole.sums
    columns = {name: np.array(column) for name, column in whole.columns.items()}
    tokens = sums["respo/tokens"]
    by_sign = {
        kind: torch.tensor([sums[f"respo/{kind}/{sign}"] for sign in SIGNS], dtype=torch.float64)
        for kind in ("tokens", "clipped", "coefficient", "responses", "ratio")
    }
    quantiles = np.percentile(columns["log_weight"], QUANTILES)
    return {
        "rollout_batch": int(columns["step"].max()),
        "responses": len(columns["step"]),
        "tokens": int(tokens),
        "score": float(columns["score"].mean()),
        "log_ratio_mean": float(columns["log_weight"].mean()),
        **{
            f"log_ratio_q{percent:02d}": float(value)
            for percent, value in zip(QUANTILES, quantiles, strict=True)
        },
        **coefficient_metrics(by_sign),
        **ratio_metrics(by_sign),
        "clamped": sums["respo/clamped"],
        "entropy": sums.get(ENTROPY, float("nan")) / tokens,
        "approx_kl": -sums["respo/log_ratio"] / tokens,
        "reference_kl": sums.get(REFERENCE_KL, float("nan")) / tokens,
        "response_length": float(columns["length"].mean()),
        "capped_share": float(columns["capped"].mean()),
        "repetition": float(columns["repetition"].mean()),
        "zero_advantage_groups": float((columns["advantage"] == 0).mean()),
        "branches": {
            kind: [
                [sums[f"respo/branch/{kind}/{sign}/{column}"] for column in range(BINS)]
                for sign in SIGNS
            ]
            for kind in BRANCH_SUMS
        },
    }


def update_row(whole: Tally, grad_norm: float | Tensor, started: float) -> Row:
    """Return the log's row of an update that has just ended, without its `mini_batch`."""
    now = time.time()
    return {
        **measure(whole),
        "grad_norm": float(grad_norm),
        "update_seconds": now - started,
        "ended": now,
    }


def _steps(data: Any, count: int) -> list[float]:
    from verl.utils import tensordict_utils as tu

    if "global_steps" not in data:
        raise ValueError(
            "the log of policy updates needs `global_steps` in the batch, which only verl's V1 "
            "trainer puts there: set trainer.use_v1=True"
        )
    steps = tu.get(data, "global_steps")
    if isinstance(steps, Tensor):
        steps = steps.tolist()
    return [float(step) for step in steps] if isinstance(steps, list) else [float(steps)] * count


def _scores(data: Any, count: int) -> list[float]:
    if "rm_scores" not in data:
        return [float("nan")] * count
    scores: list[float] = data["rm_scores"].to_padded_tensor(0.0).double().sum(dim=1).tolist()
    return scores
