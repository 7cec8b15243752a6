from io import BytesIO

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
        figure = draw_methods(methods("grpo"))
    (colours,) = drawn(figure)[0].images
    (dots,) = drawn(figure)[0].collections
    assert "dotted: c < 0" in figure.get_supxlabel().replace("\n", " ")
    # Around the middle of the pixel at the lower left, not as far as those of its neighbours.
    assert dots.hatches == ["...."]
    assert dots.get_datalim(drawn(figure)[0].transData).bounds == pytest.approx(
        (0.25, 0.25, 0.25, 0.25)
    )
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


@pytest.mark.parametrize("count", [1, 2, 5])
def test_nothing_is_cut_off(count):
    # Long labels, a note of several lines.
    chosen = methods("grpo", "aspo", "maspo", "cispo", "dac", "gspo", "respo", "vespo")
    kept = [*list(chosen)[:count], "gspo", "respo", "vespo"]
    labels = {name: chosen[name].model_copy(update={"label": 3 * "Long label "}) for name in kept}
    with style.applied():
        figure = draw_methods(labels)
        figure.savefig(BytesIO())
    whole = figure.bbox
    note = figure._supxlabel.get_window_extent()
    for axes in figure.axes[:-1]:
        if axes.axison:
            box = axes.get_tightbbox()
            assert whole.y0 <= note.y0 < note.y1 < box.y0 < box.y1 <= whole.y1


def test_colours_say_the_same_in_grey():
    with style.applied():
        image = drawn(draw_methods(methods("grpo")))[0].images[0]
    luminance = image.cmap(np.linspace(0, 1, 50))[:, :3] @ [0.2126, 0.7152, 0.0722]
    assert (np.diff(luminance) > 0).all()


def test_a_mean_over_the_response_is_left_out():
    with style.applied():
        figure = draw_methods(methods("grpo", "grpo_pos_mean_is"))
    assert len(drawn(figure)) == 2
    assert figure.get_supxlabel().replace("\n", " ").endswith("on c: GRPO_POS_MEAN_IS")


def test_without_any_method_at_token_level():
    with pytest.raises(UserError, match="none among gspo, respo; add one"):
        draw_methods(methods("gspo", "respo"))
