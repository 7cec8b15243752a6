import math

import numpy as np
import pytest
from matplotlib.figure import Figure

from respo.config.schema import Method
from respo.objectives import check_parameters
from respo.reporting.kernels import (
    PROB,
    assumptions,
    coefficient_surface,
    curve,
    depends_on_probability,
    digest,
    draw_curve,
)


def method(objective, **parameters):
    parameters = check_parameters(objective, parameters)
    return Method(label="-", objective=objective, parameters=parameters, source="-", deviations=[])


@pytest.mark.parametrize(
    ("objective", "parameters", "sign", "expected"),
    [
        # GRPO's clip: the ratio up to 1.2 for A > 0 and from 0.8 on for A < 0, else nothing.
        ("grpo", {}, 1, [(math.log(1.2), 1.2, 0)]),
        ("grpo", {}, -1, [(math.log(0.8), 0, 0.8)]),
        ("grpo", {"epsilon_high": 0.28}, 1, [(math.log(1.28), 1.28, 0)]),
        # The dual clip takes a second piece away.
        ("grpo", {"dual_clip": 3.0}, -1, [(math.log(0.8), 0, 0.8), (math.log(3), 3, 0)]),
        # GSPO's published range, 1 - 3e-4 and 1 + 4e-4: close to the middle of the axis.
        ("gspo", {}, 1, [(math.log(1.0004), 1.0004, 0)]),
        ("gspo", {}, -1, [(math.log(0.9997), 0, 0.9997)]),
        # Reshaped kernels are smooth.
        ("vespo", {}, 1, []),
        ("vespo", {}, -1, []),
        ("respo", {}, 1, []),
        ("respo", {}, -1, []),
    ],
)
def test_jumps_are_found_and_not_bridged(objective, parameters, sign, expected):
    found = curve(method(objective, **parameters), sign)
    assert np.array(found.jumps).ravel() == pytest.approx(np.array(expected).ravel(), abs=1e-9)
    assert np.isnan(found.coefficient).sum() == len(expected)
    assert (np.isnan(found.coefficient) == np.isnan(found.log_w)).all()
    # Both sides of each jump are drawn, and no step between neighbours is a jump.
    steps = np.abs(np.diff(found.coefficient))
    assert np.nanmax(steps[found.log_w[1:] < 2]) < 0.05
    assert np.nanmax(np.diff(found.log_w)) <= 0.005 + 1e-12
    assert np.nanmin(np.diff(found.log_w)) >= 0


def test_values_of_the_kernels():
    def at(objective, sign, log_w):
        found = curve(method(objective), sign)
        return found.coefficient[np.nanargmin(np.abs(found.log_w - log_w))]

    # ReSPO, App. E.3: 1.348 and 0.245 at log W = -2.
    assert at("respo", 1, -2) == pytest.approx(1.348, abs=5e-4)
    assert at("vespo", 1, -2) == pytest.approx(0.245, abs=5e-4)
    # sqrt(W) exp(2 (1 - sqrt(W))) at W = e^2, by hand: e * exp(2 - 2e).
    assert at("respo", -1, 2) == pytest.approx(math.exp(3 - 2 * math.e), rel=1e-6)
    assert at("grpo", -1, 1) == pytest.approx(math.e, rel=1e-6)
    assert [at(name, s, 0) for name in ("grpo", "gspo", "vespo", "respo") for s in (1, -1)] == (
        pytest.approx([1.0] * 8)
    )


def test_a_curve_ends_where_pi_would_exceed_one():
    # adv_reweight depends on pi itself: pi_old = 0.1 leaves log W up to log 10.
    found = curve(method("adv_reweight", epsilon_high=20), 1)
    assert found.ends
    assert found.log_w[-1] == pytest.approx(math.log(10))
    # By hand: r * (0.1 pi + 0.9) with pi = 1 and r = 10.
    assert found.coefficient[-1] == pytest.approx(10)
    axes = Figure().subplots()
    draw_curve(axes, found, color="red")
    assert [line.get_marker() for line in axes.lines] == ["None", "|"]


@pytest.mark.parametrize(
    ("objective", "expected"),
    # bapo takes pi_old in its sums over the mini-batch alone.
    [("grpo", False), ("respo", False), ("maspo", True), ("adv_reweight", True), ("bapo", False)],
)
def test_what_depends_on_probabilities(objective, expected):
    assert depends_on_probability(method(objective)) is expected
    assert curve(method(objective), 1).ends is expected


def test_a_surface_has_rows_of_pi_and_columns_of_pi_old():
    c = coefficient_surface(method("grpo"), 1)
    # ASPO, Sec. 5.2: pi_old = 0.9 and pi = 0.1 give 1/9.
    assert c[24, 216] == pytest.approx(PROB[24] / PROB[216])
    assert c[24, 216] == pytest.approx(1 / 9, rel=0.02)
    # Above the diagonal, r > 1.2 is clipped.
    assert c[216, 24] == 0


def test_assumptions_name_the_methods_they_matter_to():
    assert assumptions([method("grpo"), method("respo")]) == ""
    assert assumptions([method("entropy_adv"), method("bapo")]) == (
        "; entropy 1 nat: -; before anything is adapted to a mini-batch: -"
    )


def test_the_digest_sees_four_decimals_and_no_more():
    values = np.array([1.0, np.nan, 0.00125, 0.0])
    same = digest([values])
    # Rounding errors do not matter, nor on which side of zero they are, nor the sign of NaN.
    assert digest([values * (1 + 1e-15)]) == same
    assert digest([np.array([1.0, -np.nan, 0.00125, -0.0])]) == same
    assert digest([values + 1e-4]) != same
    assert digest([values, values]) != same
