import numpy as np
import pytest

from respo.reporting.page.curves import METRICS, collect, thinned
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
    assert (there["updates"], there["width"]) == (32, 1)
    # Rewards are -1 and 1: 0.5 is three quarters right.
    assert there["values"]["score"] == [0.75] * 32
    assert there["values"]["entropy"] == entropy.tolist()
    target = made.run("respo").folder(made.path) / "metrics.parquet"
    assert missing == {
        **{"model": "small", "method": "respo", "N": 8, "seed": 1},
        "target": str(target),
    }


def test_long_runs_have_few_points(folder):
    made = folder(updates=1000, checkpoints=[1000], evaluation=EVALUATION)
    made.metrics([0.0] * 1000, np.arange(1000.0), "grpo")
    run = collect(made.results)["runs"][0]
    # 1000 / 256 is more than 3.
    assert run["width"] == 4
    assert run["values"]["log_ratio_mean"][:2] == [1.5, 5.5]
    assert len(run["values"]["log_ratio_mean"]) == 250


EVALUATION = {"updates": [1000], "temperature": 1.0, "top_p": 0.7, "seed": 0}


def test_what_is_offered_is_measured():
    assert set(METRICS) <= set(MEASURED)
    # Left out: clamped exponents, and two of five quantiles.
    left_out = {"clamped", "log_ratio_q25", "log_ratio_q75"}
    assert set(MEASURED) - set(METRICS) - set(INTEGERS) == left_out
