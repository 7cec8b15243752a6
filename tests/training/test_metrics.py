import math

import pyarrow as pa
import pytest
import torch

from respo.training.local.metrics import (
    METRICS,
    branches,
    branches_table,
    measure,
    metrics_table,
)
from respo.training.local.responses import Responses

# Four responses of 1, 2, 3 and 2 tokens after a prompt of one token.
MASK = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 1], [1, 1, 0]], dtype=torch.bool)
LOG_RATIO = torch.tensor([[0.3, 9, 9], [-0.2, -0.4, 9], [0.5, 0.5, 0.25], [-3, -3, 9.0]])
LOG_RATIO = torch.where(MASK, LOG_RATIO, 0.0)
ADVANTAGE = torch.tensor([0.5, -0.5, 2.0, -1.0])


def responses() -> Responses:
    return Responses(
        ids_BT=torch.ones((4, 4), dtype=torch.int64),
        mask_BT=MASK,
        old_log_prob_BT=torch.zeros(4, 3),
        length_B=torch.tensor([2, 3, 4, 3]),
        response_length_B=torch.tensor([1, 2, 3, 2]),
        truncated_B=torch.tensor([False, False, True, False]),
        reward_B=torch.tensor([1.0, -1, 1, -1], dtype=torch.float64),
        advantage_B=ADVANTAGE,
        equal_reward_B=torch.tensor([False, False, True, True]),
        repetition_B=torch.tensor([0, 0, 0.5, 0.0], dtype=torch.float64),
    )


def test_metrics_by_hand() -> None:
    coefficient = torch.tensor([[0.0, 7, 7], [1, 0, 7], [2, 2, 0], [0, 0, 7.0]])
    entropy = torch.tensor([[0.8, 7, 7], [0.4, 0.4, 7], [0, 0, 0.4], [0.4, 0.8, 7]])
    metrics = measure(
        responses(),
        "grpo",
        log_ratio_BT=LOG_RATIO,
        coefficient_BT=coefficient,
        entropy_BT=entropy,
    )
    # log W = 0.3, -0.6, 1.25, -6, sorted -6, -0.6, 0.3, 1.25; quantile q lies at 3q of 0..3.
    assert metrics == pytest.approx(
        {
            "score": 0,
            "log_ratio_mean": -5.05 / 4,
            "log_ratio_q05": -6 + 0.15 * 5.4,
            "log_ratio_q25": -6 + 0.75 * 5.4,
            "log_ratio_q50": -0.6 + 0.5 * 0.9,
            "log_ratio_q75": 0.3 + 0.25 * 0.95,
            "log_ratio_q95": 0.3 + 0.85 * 0.95,
            "clip_fraction_pos": 2 / 4,  # tokens 0 | 2, 2, 0
            "clip_fraction_neg": 3 / 4,  # tokens 1, 0 | 0, 0
            "coefficient_mean_pos": 4 / 4,
            "coefficient_mean_neg": 1 / 4,
            # Ratios e^l, averaged over a response's tokens, then over the responses of a sign.
            "ratio_mean_pos": (1.3498588 + (2 * 1.6487213 + 1.2840254) / 3) / 2,
            "ratio_mean_neg": ((0.8187308 + 0.6703200) / 2 + 0.0497871) / 2,
            "clamped": 0,
            "entropy": 3.2 / 8,
            "approx_kl": 5.05 / 8,
            "response_length": 2,
            "capped_share": 1 / 4,
            "repetition": 1 / 8,
            "zero_advantage_groups": 1 / 2,
        },
        rel=1e-6,
    )


def test_clamped_exponents_are_counted() -> None:
    log_ratio = torch.where(MASK, torch.tensor([[25.0], [-25], [1], [1]]), 0.0)
    tensors = {"log_ratio_BT": log_ratio, "coefficient_BT": log_ratio, "entropy_BT": log_ratio}
    # Tokens beyond +-20 for GRPO, responses for ReSPO.
    assert measure(responses(), "grpo", **tensors)["clamped"] == 3
    assert measure(responses(), "respo", **tensors)["clamped"] == 2


def test_branches_add_up() -> None:
    coefficient = torch.tensor([[0.5, 7, 7], [1, 0, 7], [2, 2, 0.5], [3, 1, 7.0]])
    sums = branches(responses(), log_ratio_BT=LOG_RATIO, coefficient_BT=coefficient)
    assert sums.shape == (3, 2, 10)
    rows = [{"update": 1, "rollout_batch": 0}, {"update": 2, "rollout_batch": 0}]
    table = branches_table(rows, torch.stack([sums, torch.zeros_like(sums)]))
    assert table.num_rows == 40
    filled = [row for row in table.to_pylist() if row["responses"]]
    # Edges -inf -5 -2 -1 -0.5 0 0.5 1 2 5 inf; mass = |A| * mean coefficient of the response.
    assert [(r["update"], r["sign"], r["bin"], r["responses"], r["tokens"]) for r in filled] == [
        (1, "pos", 5, 1, 1),
        (1, "pos", 7, 1, 3),
        (1, "neg", 0, 1, 2),
        (1, "neg", 3, 1, 2),
    ]
    mass = [row["coefficient_mass"] for row in filled]
    assert mass == pytest.approx([0.5 * 0.5, 2 * 1.5, 1 * 2, 0.5 * 0.5])
    assert sum(table["responses"].to_pylist()) == 4
    assert sum(table["tokens"].to_pylist()) == int(MASK.sum())


def test_tables_have_the_declared_types() -> None:
    row = dict.fromkeys(METRICS, math.nan) | {"update": 1.0, "rollout_batch": 0.0}
    metrics = metrics_table([row])
    assert metrics.schema.names == list(METRICS)
    assert [metrics.schema.field(n).type for n in ("update", "score")] == [pa.int32(), pa.float64()]
    branch = branches_table([row], torch.zeros((1, 3, 2, 10), dtype=torch.float64))
    assert branch.schema == pa.schema(
        {
            "update": pa.int32(),
            "rollout_batch": pa.int32(),
            "sign": pa.string(),
            "bin": pa.int32(),
            "responses": pa.int64(),
            "coefficient_mass": pa.float64(),
            "tokens": pa.int64(),
        }
    )
