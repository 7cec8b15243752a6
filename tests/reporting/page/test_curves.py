import numpy as np
import pytest

from respo.reporting import curves as figures
from respo.reporting import dynamics
from respo.reporting.page.curves import BY_BATCH, METRICS, collect, thinned
from respo.training.local.metrics import INTEGERS
from respo.training.local.metrics import METRICS as MEASURED


@pytest.mark.parametrize(
    ("values", "width", "means"),
    [
        ([1.0, 2.0, 3.0], 1, [1.0, 2.0, 3.0]),
        # (1 + 2) / 2, (3 + 5) / 2, and what is left.
        ([1.0, 2.0, 3.0, 5.0, 7.0], 2, [1.5, 4.0, 7.0]),
        ([1.0, np.nan, np.nan, np.nan], 2, [1.0, None]),
        ([1.0, np.inf], 2, [1.0]),
        ([123456.0, 0.000123456], 1, [123500.0, 0.0001235]),
    ],
)
def test_means_of_updates(values, width, means):
    assert thinned(np.array(values), width) == means


def test_curves_of_runs_and_targets_of_what_is_missing(folder):
    made = folder()
    entropy, nothing = np.arange(32.0), np.full(32, np.nan)
    made.metrics([0.5] * 32, [-0.25] * 32, "grpo", entropy=entropy, reference_kl=nothing)
    found = collect(made.results)
    # No run has a KL to the initial weights.
    assert list(found["metrics"]) == ["score", "log_ratio_mean", "entropy"]
    there, missing = found["runs"]
    assert (there["method"], there["N"], there["seed"]) == ("grpo", 8, 1)
    assert (there["updates"], there["width"]) == (32, [1, 8])
    # Rewards are -1 and 1: 0.5 is three quarters right.
    assert there["values"]["score"] == [0.75] * 32
    # One for each of four rollout batches.
    assert there["values"]["log_ratio_mean"] == [-0.25] * 4
    assert {name for name, m in found["metrics"].items() if m["by_batch"]} == {"log_ratio_mean"}
    # A sixteenth of a run are 3 updates, an eighth 5, which are as good as one rollout batch.
    assert there["spans"] == {"0.03125": [1, 1], "0.0625": [3, 1], "0.125": [5, 1]}
    assert there["values"]["entropy"] == entropy.tolist()
    assert missing == {
        **{"model": "small", "method": "respo", "N": 8, "seed": 1},
        "target": "small/respo/N8/seed1/metrics.parquet",
    }


def test_long_runs_have_few_points(folder):
    made = folder(updates=1000, checkpoints=[1000], evaluation=EVALUATION)
    made.metrics([0.0] * 1000, np.arange(1000.0), "grpo", entropy=np.arange(1000.0))
    run = collect(made.results)["runs"][0]
    # 1000 / 256 is more than 3; 125 rollout batches are few enough.
    assert run["width"] == [4, 8]
    assert run["values"]["entropy"][:2] == [1.5, 5.5]
    assert len(run["values"]["entropy"]) == 250
    assert run["values"]["log_ratio_mean"][:2] == [3.5, 11.5]
    # A sixteenth are 63 updates: 15 points of 4, or 7 of 8.
    assert run["spans"]["0.0625"] == [15, 7]


def test_curves_are_those_of_the_figures(folder):
    made = folder()
    drift = np.random.default_rng(0).normal(size=32)
    made.metrics([0.0] * 32, drift, "grpo")
    values = collect(made.results)["runs"][0]["values"]["log_ratio_mean"]
    drawn = figures.smoothed([drift], figures.window(32), staleness=8)
    assert values == pytest.approx(drawn.mean.tolist(), rel=1e-3)
    known = [each for each in vars(dynamics).values() if isinstance(each, dynamics.Quantity)]
    shown = [each for each in known if each.column in METRICS]
    assert len(shown) > 5
    assert [each.by_batch for each in shown] == [each.column in BY_BATCH for each in shown]


EVALUATION = {"updates": [1000], "temperature": 1.0, "top_p": 0.7, "seed": 0}


def test_what_is_offered_is_measured():
    assert set(METRICS) <= set(MEASURED)
    # Left out: clamped exponents, and two of five quantiles.
    left_out = {"clamped", "log_ratio_q25", "log_ratio_q75"}
    assert set(MEASURED) - set(METRICS) - set(INTEGERS) == left_out
