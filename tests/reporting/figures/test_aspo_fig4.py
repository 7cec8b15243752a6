import numpy as np
import pytest
from matplotlib.patches import Rectangle

from respo.cli import UserError
from respo.config.schema import Method
from respo.objectives import check_parameters
from respo.reporting import style
from respo.reporting.figures.aspo_fig4 import draw, draw_methods


def methods(*objectives):
    return {
        name: Method(
            label=name.upper(),
            objective=name,
            parameters=check_parameters(name, {}),
            source="-",
            deviations=[],
        )
        for name in objectives
    }


def drawn(figure):
    return [axes for axes in figure.axes if axes.images]


def test_a_pair_of_panels_per_method_at_token_level(folder):
    with style.applied():
        figure = draw(folder(methods=["grpo", "gspo", "respo"]).results)
    assert [axes.get_title() for axes in drawn(figure)] == ["GRPO\nA > 0", "GRPO\nA < 0"]
    assert "left out" in figure.get_supxlabel()
    assert "GSPO, ReSPO" in " ".join(figure.get_supxlabel().split())


def test_what_is_clipped_has_no_colour():
    with style.applied():
        figure = draw_methods(methods("grpo"))
    positive, negative = (axes.images[0].get_array() for axes in drawn(figure))
    # Row: pi. Column: pi_old. A risen token is clipped for A > 0, a fallen one for A < 0.
    assert (bool(positive.mask[200, 20]), bool(positive.mask[20, 200])) == (True, False)
    assert (bool(negative.mask[200, 20]), bool(negative.mask[20, 200])) == (False, True)
    for axes in drawn(figure):
        (hatched,) = (patch for patch in axes.patches if isinstance(patch, Rectangle))
        assert hatched.get_hatch()
        assert axes.images[0].norm.vmin * axes.images[0].norm.vmax == pytest.approx(1)


def test_a_negative_coefficient_is_not_taken_for_none(monkeypatch):
    monkeypatch.setattr(
        "respo.reporting.figures.aspo_fig4.coefficient_surface",
        lambda method, sign: np.array([[-1.0, 0.0], [1.0, 2.0]]),
    )
    with style.applied():
        axes = drawn(draw_methods(methods("grpo")))[0]
    black, colours = axes.images
    assert black.get_array().mask.tolist() == [[False, True], [True, True]]
    assert colours.get_array().mask.tolist() == [[True, True], [False, False]]


@pytest.mark.parametrize(("count", "panels"), [(1, 2), (2, 4), (3, 8)])
def test_two_methods_in_a_row(count, panels):
    with style.applied():
        figure = draw_methods(methods(*["grpo", "aspo", "maspo"][:count]))
    assert len(drawn(figure)) == 2 * count
    # One more for the colour bar.
    assert len(figure.axes) == panels + 1
    # The lowest panel of each column names its axis.
    assert sum(axes.get_xlabel() != "" for axes in figure.axes) == min(panels, 4)


def test_without_any_method_at_token_level():
    with pytest.raises(UserError, match="none among gspo, respo; add one"):
        draw_methods(methods("gspo", "respo"))
