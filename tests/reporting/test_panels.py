import pytest

from respo.reporting.grouping import Setting
from respo.reporting.panels import blocks, over_updates, panels


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        # A row per model, since one has several N.
        (["a8", "a16", "b8"], [["a8", "a16"], ["b8"]]),
        # Models with one N each lie beside each other.
        (["a4", "b4", "c4"], [["a4", "b4", "c4"]]),
        # At most four columns.
        (["a1", "a2", "a3", "a4", "a5"], [["a1", "a2", "a3", "a4"], ["a5"]]),
    ],
)
def test_blocks(names, expected):
    settings = [Setting(name[0], int(name[1:])) for name in names]
    found = [[f"{s.model}{s.staleness}" for s in block] for block in blocks(settings)]
    assert found == expected


def test_panels_of_one_model_share_their_axis(folder):
    made = folder(models=["small", "moe"], staleness=[8, 16])
    settings = [Setting("small", 8), Setting("small", 16), Setting("moe", 8)]
    figure, found = panels(made.study, settings, ["upper", "lower"])
    assert len(figure.axes) == 8
    assert [axes.axison for axes in figure.axes] == [True] * 5 + [False, True, False]
    first, second, third = (found[setting] for setting in settings)
    assert [axes.get_title() for axes in (first[0], first[1])] == ["Small & dense, N = 8", ""]
    assert [axes.get_ylabel() for axes in first] == ["upper", "lower"]
    # The locator would leave two ticks between -0.197 and 0.01, one of them zero.
    first[1].set_ylim(-0.197, 0.01)
    assert sum(-0.197 <= tick <= 0.01 for tick in first[1].get_yticks()) >= 3
    # No factor such as 1e-5 at the top of the axis.
    third[1].set_ylim(0, 2e-5)
    figure.draw_without_rendering()
    assert third[1].yaxis.get_offset_text().get_text() == ""
    assert "0.000020" in [label.get_text() for label in third[1].get_yticklabels()]
    first[0].set_ylim(0, 7)
    assert (second[0].get_ylim()[1], third[0].get_ylim()[1]) == (7, 1)
    over_updates(first, 100)
    assert first[0].get_xlim() == first[1].get_xlim() == pytest.approx((-3.5, 103.5))
    assert [axes.get_xlabel() for axes in first] == ["", "policy updates"]
