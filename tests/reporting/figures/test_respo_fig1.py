import pytest

from respo.config.schema import Method
from respo.objectives import check_parameters
from respo.reporting import style
from respo.reporting.figures.respo_fig1 import draw, draw_methods


def method(label, objective):
    parameters = check_parameters(objective, {})
    return Method(
        label=label, objective=objective, parameters=parameters, source="-", deviations=[]
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
        assert axes.get_ylim()[1] == 3.5
    assert "c is shown up to 3.5" in figure.get_supxlabel()


@pytest.mark.parametrize("count", [1, 4, 12])
def test_many_methods_have_lines_of_their_own(count):
    objectives = [
        "grpo", "aspo", "maspo", "sapo", "cispo", "dac", "bapo", "gppo", "gspo", "vespo", "respo",
        "entropy_adv",
    ]  # fmt: skip
    methods = {name: method(name.upper(), name) for name in objectives[:count]}
    with style.applied():
        figure = draw_methods(methods)
    for axes in figure.axes:
        curves = [line for line in axes.lines if len(line.get_xdata()) > 100]
        assert len({(line.get_color(), line.get_linewidth()) for line in curves}) == count
    # What a curve holds fixed is said of those that depend on it.
    note = " ".join(figure.get_supxlabel().split())
    assert ("log W ends at 2.3 (bar): MASPO, DAC" in note) == (count == 12)
    assert ("entropy 1 nat: ENTROPY_ADV" in note) == (count == 12)


def test_a_curve_that_stays_high_is_seen():
    # CISPO's cap is 1 + 4 by default.
    with style.applied():
        figure = draw_methods({"cispo": method("CISPO", "cispo")})
    assert figure.axes[0].get_ylim()[1] == 5.5
    assert "c is shown up to 5.5" in figure.get_supxlabel()


def test_methods_of_one_kernel_share_a_line():
    with style.applied():
        figure = draw_methods({"respo": method("ReSPO", "respo"), "r3": method("R3", "respo")})
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["ReSPO"]
    assert figure.get_supxlabel().replace("\n", " ").endswith("the same as ReSPO: R3")
