"""`respo/training`, and what tables of training hand to the comparison with the paper."""

import csv
import io

import pytest

from respo.reporting import table
from respo.reporting.tables import respo_table5, respo_table6, respo_training

MORE = {"response_length": [9.0] * 32, "capped_share": [0.0] * 32, "approx_kl": [0.0] * 32}


def test_a_row_for_each_method_and_n_of_full_length(folder):
    short = {"methods": ["vespo"], "staleness": [8], "updates": 16, "evaluate": False}
    made = folder(methods=["grpo"], staleness=[8, 16], seeds=[1, 2], extra_runs=[short])
    # Peak of the first 8 updates, whose last one is the highest, but lower than the ninth; the last
    # five, from 28 on, are late.
    made.metrics([0.0] * 7 + [0.5] + [0.7] * 8 + [0.0] * 16, [0.0] * 32, "grpo", seed=1, **MORE)
    made.metrics([0.0] * 27 + [0.6] * 5, [0.0] * 32, "grpo", seed=2, **MORE)
    rows = list(csv.DictReader(io.StringIO(table.make("respo/training", made.results)["csv"])))
    assert [(row["method"], row["N"]) for row in rows] == [("grpo", "8"), ("grpo", "16")]
    # Scores (s + 1) / 2: peaks 0.75 and 0.5, late means 0.5 and 0.8.
    assert float(rows[0]["early_peak"]) == 0.625
    assert float(rows[0]["late_score"]) == pytest.approx(0.65)
    assert float(rows[0]["late_score_seed_sd"]) == pytest.approx(0.15)
    assert (rows[1]["early_peak"], rows[1]["late_score_seed_sd"]) == ("", "")


def test_a_peak_of_the_untrained_policy_is_told(folder):
    # The early window is of eight updates, and so is the first rollout batch of N = 8.
    made = folder(methods=["grpo", "gspo"], staleness=[4, 8, 16])
    first, second = [0.5, 0.4, 0.3] + [0.0] * 29, [0.0] * 4 + [0.5] * 28
    for staleness, method, score in (
        (4, "grpo", first), (4, "gspo", second), (8, "grpo", second), (8, "gspo", second),
    ):  # fmt: skip
        made.metrics(score, [0.0] * 32, method, staleness=staleness, **MORE)
    (note,) = [
        line
        for line in table.make("respo/training", made.results)["md"].splitlines()
        if line.startswith("- The first N updates")
    ]
    assert note.endswith(
        "of Small & dense, N = 4: GRPO; "
        "Small & dense, N = 8: all, as no other update is that early."
    )
    # N = 16 has no metrics yet. Another seed of GRPO that peaks later:
    seeds = folder(methods=["grpo"], staleness=[4], seeds=[1, 2])
    seeds.metrics(first, [0.0] * 32, "grpo", staleness=4, **MORE)
    seeds.metrics(second, [0.0] * 32, "grpo", staleness=4, seed=2, **MORE)
    text = table.make("respo/training", seeds.results)["md"]
    assert "of Small & dense, N = 4: GRPO (1 of 2 seeds)." in text
    later = folder(methods=["grpo"], staleness=[4])
    later.metrics(second, [0.0] * 32, "grpo", staleness=4, **MORE)
    assert "first N updates" not in table.make("respo/training", later.results)["md"]


def test_values_of_some_seeds_are_marked(folder):
    made = folder(methods=["grpo"], seeds=[1, 2])
    made.metrics([0.0] * 32, [0.0] * 32, "grpo", seed=1, **MORE)
    text = table.make("respo/training", made.results)["md"]
    (row,) = [line for line in text.splitlines() if line.startswith("| Small")]
    assert row.count("†") == 6
    assert "- † of some of the seeds alone: Small & dense, N = 8, GRPO: 1 of 2 seeds." in text


def test_scores_are_compared_in_percent_with_those_of_the_same_n(folder):
    made = folder(methods=["grpo"], staleness=[8, 16])
    made.metrics([0.5] * 32, [0.0] * 32, "grpo", staleness=8, **MORE)
    made.metrics([-0.5] * 32, [0.0] * 32, "grpo", staleness=16, **MORE)
    ours = respo_training.make(made.results).ours

    def found(staleness, metric):
        value = ours("small", "grpo", staleness, "training", metric)
        return value and (value.value, value.error)

    assert found(8, "late_mean") == (75.0, None)
    assert found(16, "late_mean") == (25.0, None)
    assert found(16, "early_peak") == (25.0, None)
    assert found(32, "late_mean") is None


def test_masses_are_compared_in_percent_and_with_the_last_rollout_batch(folder):
    made = folder(methods=["grpo"])
    # Bin 1 is (-5, -2], bin 4 (-0.5, 0].
    sums = {(1, 1): (1, 3.0, 40), (1, 4): (3, 1.0, 60), (2, 1): (1, 1.0, 50), (2, 4): (3, 4.0, 30)}
    made.branches(sums, "grpo")
    made.metrics(
        [0.0] * 32, [-1.0] * 16 + [-0.25] * 16, "grpo", rollout_batch=[1] * 16 + [2] * 16, **MORE
    )

    def found(module, metric, staleness=8):
        value = module.make(made.results).ours("small", "grpo", staleness, "training", metric)
        return value and value.value

    # 2 of 8 responses, 4 of 9 of the mass.
    assert found(respo_table5, "share of responses, log W <= -1") == 25.0
    assert found(respo_table5, "share of mass, log W <= -1") == pytest.approx(400 / 9)
    assert found(respo_table5, "amplification, log W <= -1") == pytest.approx(16 / 9)
    assert found(respo_table5, "share of mass, log W <= -1", staleness=16) is None
    # The last of the two rollout batches: 1 of 5, and 4 of 5.
    mass = "share of mass, {} < log W <= {}, last rollout batch"
    assert found(respo_table6, mass.format(-5, -0.5)) == pytest.approx(20.0)
    assert found(respo_table6, mass.format(-0.5, 0)) == pytest.approx(80.0)
    assert found(respo_table6, "mean log W, last rollout batch") == -0.25
    assert found(respo_table6, "mean tokens, first rollout batch") == 25.0
    assert found(respo_table6, "mean tokens, last rollout batch") == 20.0
