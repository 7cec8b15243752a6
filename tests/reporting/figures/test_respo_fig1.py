import math

import numpy as np
import pytest

from respo.config.schema import Method
from respo.reporting import style
from respo.reporting.figures.respo_fig1 import curve, draw


def method(objective, **parameters):
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


def test_the_figure_shows_the_methods_of_the_study(folder):
    with style.applied():
        figure = draw(folder(methods=["grpo", "gspo", "vespo", "respo"]).results)
    positive, negative = figure.axes
    assert (positive.get_title(), negative.get_title()) == ("A > 0", "A < 0")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "GRPO", "GSPO", "VESPO", "ReSPO",
    ]  # fmt: skip
    for axes in figure.axes:
        curves = [line for line in axes.lines if len(line.get_xdata()) > 100]
        dots = [line for line in axes.lines if line.get_marker() == "o"]
        assert (len(curves), len(dots)) == (4, 2)
        assert axes.get_xlim() == (-5, 5)
        assert axes.get_ylim()[1] == 3
    assert "c is shown up to 3" in figure.get_supxlabel()
