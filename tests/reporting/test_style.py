import pytest
from matplotlib.figure import Figure

from respo.reporting import style


def test_known_methods_look_the_same_in_every_study():
    both = style.lines(["grpo", "respo"])
    assert style.lines(["respo"])["respo"] == both["respo"] == style.FIXED["respo"]
    looks = [(line["color"], line["linestyle"]) for line in style.FIXED.values()]
    assert len(set(looks)) == len(style.FIXED)


def test_other_methods_get_a_line_of_their_own_from_their_name():
    names = ["grpo", "gspo", "vespo", "respo", *(f"method-{index}" for index in range(10))]
    lines = style.lines(names)
    assert len({str(line) for line in lines.values()}) == len(names)
    assert style.lines(["method-0"])["method-0"] == lines["method-0"]


def test_more_methods_than_looks_share_them():
    names = [f"method-{index}" for index in range(40)]
    assert set(style.lines(names)) == set(names)


def test_style_ignores_the_users_settings(monkeypatch):
    import matplotlib

    with matplotlib.rc_context({"axes.facecolor": "black"}), style.applied():
        assert matplotlib.rcParams["axes.facecolor"] == "white"


@pytest.mark.parametrize(("width", "columns"), [(1.0, 1), (3.3, 2), (7.0, 4)])
def test_legend_fits_the_figure(width, columns):
    figure = Figure(figsize=(width, 2))
    style.legend(figure, {f"m{index}": {"color": "red"} for index in range(4)})
    assert figure.legends[0]._ncols == columns


def test_note_is_wrapped():
    figure = Figure(figsize=(2, 2))
    style.note(figure, "first\n" + "word " * 20)
    lines = figure.get_supxlabel().splitlines()
    assert lines[0] == "first"
    assert all(len(line) <= 32 for line in lines)


def test_a_new_method_takes_a_free_colour_first():
    known = ["grpo", "gspo", "vespo", "respo"]
    for name in ("sqrt_is", "mine", "another"):
        lines = style.lines([*known, name])
        assert lines[name]["color"] not in {lines[method]["color"] for method in known}


def test_the_legend_is_as_wide_as_its_labels():
    # 7 inches hold 5 short labels, or with a long one as many as it leaves room for.
    assert style.legend_rows([f"m{index}" for index in range(10)], 7.0) == 2
    assert style.legend_rows(["m" * 30, *(f"m{index}" for index in range(9))], 7.0) == 3
    assert style.legend_rows(["m" * 200, "m"], 7.0) == 2
    assert style.legend_rows(["m" * 200], 7.0) == 1


def test_colours_are_used_evenly():
    lines = style.lines([f"method-{index}" for index in range(12)])
    colors = [line["color"] for line in lines.values()]
    assert {colors.count(color) for color in colors} == {2}


@pytest.mark.parametrize("count", [1, 2, 4, 12])
def test_lines_that_coincide_are_all_seen(count):
    many = style.nested(style.lines([f"method-{index}" for index in range(count)]))
    widths = [line["linewidth"] for line in many.values()]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == count
    assert widths[-1] > 1
    assert widths[0] < 4
