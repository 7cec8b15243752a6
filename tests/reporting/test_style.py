from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from respo.reporting import style


def test_known_methods_look_the_same_in_every_study():
    both = style.lines(["grpo", "respo"])
    assert style.lines(["respo"])["respo"] == both["respo"] == style.FIXED["respo"]
    looks = [(line["color"], line["linestyle"]) for line in style.FIXED.values()]
    assert len(set(looks)) == len(style.FIXED)


def test_routing_replay_has_dashes():
    lines = style.lines(["respo", "respo-r2", "respo-r3"])
    assert len({line["color"] for line in lines.values()}) == 3
    assert len({str(line["linestyle"]) for line in lines.values()}) == 3


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


def test_the_rows_of_a_legend_are_even():
    figure = Figure(figsize=(5.0, 2))
    style.legend(figure, {f"m{index}": {"color": "red"} for index in range(6)})
    assert figure.legends[0]._ncols == 3  # not 5, with one entry in the second row


def test_note_is_wrapped():
    figure = Figure(figsize=(2, 2))
    style.note(figure, "first\n" + "word " * 20)
    lines = figure.get_supxlabel().splitlines()
    # The panels are as high as they were.
    assert figure.get_figheight() == pytest.approx(2 + style.NOTE_LINE * len(lines))
    assert lines[0] == "first"
    assert all(len(line) <= 32 for line in lines)


def test_made_up_numbers_say_so():
    figure = Figure(figsize=(4, 2))
    shown, off = figure.subplots(1, 2)
    off.set_axis_off()
    style.note(figure, "first")
    height = figure.get_figheight()
    style.mark_synthetic(figure, "made up")
    assert [len(axes.texts) for axes in (shown, off)] == [1, 0]
    assert figure.get_supxlabel() == "first\nmade up"
    assert figure.get_figheight() == pytest.approx(height + style.NOTE_LINE)


def test_a_new_method_takes_a_free_colour_first():
    known = ["grpo", "gspo", "vespo", "respo"]
    for name in ("sqrt_is", "mine", "another"):
        lines = style.lines([*known, name])
        assert lines[name]["color"] not in {lines[method]["color"] for method in known}


def test_the_legend_is_as_wide_as_its_labels():
    # 7 inches hold 7 short labels, or with a long one as many as it leaves room for.
    assert style.legend_rows([f"m{index}" for index in range(10)], 7.0) == 2
    assert style.legend_rows(["m" * 60, *(f"m{index}" for index in range(9))], 7.0) == 4
    assert style.legend_rows(["m" * 200, "m"], 7.0) == 2
    assert style.legend_rows(["m" * 200], 7.0) == 1


def test_colours_are_used_evenly():
    lines = style.lines([*style.FIXED, *(f"method-{index}" for index in range(16))])
    colors = [line["color"] for line in lines.values()]
    # 6 methods have colours of their own; the first 5 others take the 5 further ones.
    assert len(set(colors[:11])) == 11
    assert {colors.count(color) for color in colors} == {2}


# Linear RGB as seen with full protanopia, deuteranopia and tritanopia: Machado, Oliveira and
# Fernandes (2009), A Physiologically-based Model for Simulation of Color Vision Deficiency.
VISION = [
    np.eye(3),
    [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
]
# sRGB to XYZ with the white D65 (IEC 61966-2-1).
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(linear):
    """CIE L*a*b* of linear RGB."""
    xyz = XYZ @ np.clip(linear, 0, 1) / XYZ.sum(axis=1)
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def test_colours_differ_for_all_kinds_of_colour_vision():
    names = [*style.FIXED, *(f"method-{index}" for index in range(5))]
    srgb = [np.array(to_rgb(line["color"])) for line in style.lines(names).values()]
    linear = [np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) for c in srgb]
    for vision in VISION:
        seen = [lab(vision @ color) for color in linear]
        # A difference of 2.3 is just noticeable; Okabe and Ito's own come as close as 16.
        assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 16
    for color in linear:
        assert 1.05 / (XYZ[1] @ color + 0.05) > 2.2  # contrast with white (WCAG)


@pytest.mark.parametrize("count", [1, 2, 4, 12])
def test_lines_that_coincide_are_all_seen(count):
    many = style.nested(style.lines([f"method-{index}" for index in range(count)]))
    widths = [line["linewidth"] for line in many.values()]
    assert widths == sorted(widths, reverse=True)
    assert len(set(widths)) == count
    assert widths[-1] > 1
    assert widths[0] < 4


def test_what_is_wide_elsewhere_is_widest_and_below():
    lines = style.nested(style.lines(["grpo", "respo", "gspo"]))
    assert list(lines) == ["grpo", "respo", "gspo"]
    assert sorted(lines, key=lambda name: -lines[name]["linewidth"]) == ["respo", "grpo", "gspo"]
    assert sorted(lines, key=lambda name: lines[name]["zorder"]) == ["respo", "grpo", "gspo"]
