"""docs/objectives.md is in step with code and YAML: run `python -m respo.reporting.objectives`."""

import re

import pytest
from PIL import Image

from respo.config import method_files
from respo.config.schema import Method
from respo.reporting import objectives, style
from respo.reporting.methods import CONFIG
from respo.reporting.objectives import Section, escape, number, page, picture, source

REMEDY = "run `python -m respo.reporting.objectives`"


@pytest.fixture(scope="module")
def sections():
    return objectives.sections()


def test_the_page_is_in_step(sections):
    assert objectives.PAGE.read_text(encoding="utf-8") == page(sections), REMEDY


def test_every_picture_shows_the_data_of_today(sections):
    for section in sections:
        with Image.open(picture(section)) as image:
            assert image.text["Source"] == source(section), REMEDY
    assert set(objectives.PICTURES.iterdir()) == set(map(picture, sections)), REMEDY
    assert sum(path.stat().st_size for path in objectives.PICTURES.iterdir()) < 1_500_000


def test_every_method_is_on_the_page_once(sections):
    names = [name for section in sections for name in section.methods]
    assert sorted(names) == sorted(method_files(CONFIG))
    text = page(sections)
    for name in names:
        assert len(re.findall(rf"^\| `{re.escape(name)}` +\|", text, re.MULTILINE)) == 1


def method(**changes):
    values = {
        "label": "A*",
        "objective": "grpo",
        "parameters": {"epsilon_low": 0.2, "epsilon_high": 0.2, "dual_clip": None},
        "source": "a paper",
        "deviations": [],
        **changes,
    }
    return Method(**values)


def test_a_section():
    wide = {"epsilon_low": 0.2, "epsilon_high": 0.28, "dual_clip": None}
    section = Section(
        "grpo",
        {
            "grpo": method(),
            "wide": method(parameters=wide, deviations=["1. one.", "2. two."]),
            "bonus": method(entropy_coefficient=0.001),
        },
    )
    text = page([section])
    assert "### grpo\n\n```text\nc: r, 0 where A > 0 and r > 1 + epsilon_high, or A" in text
    assert "| `dual_clip`    | null    | a number in (1, 1e+06], or null |" in text
    assert "| `wide`  | A\\*   | 0.2           | 0.28           | null        |" in text
    assert "`entropy_coefficient: 0.001` | a paper |" in text
    assert "Deviations of `wide`: 1. one. 2. two." in text
    assert "Deviations of `grpo`, `bonus`: none." in text
    assert "respo/fig1 --methods grpo,wide,bonus --out fig1.png" in text
    assert f"curves {section.digest()}" in text
    # The bonus has the curve of grpo.
    assert [len(curves) for curves in section.curves.values()] == [2, 2]


def test_a_picture_has_kernels_and_at_token_level_surfaces():
    parameters = {"beta_pos": 2.0, "lambda_pos": 3.0, "beta_neg": 3.0, "lambda_neg": 2.0}
    for objective, given, images in (("grpo", {}, 2), ("vespo", parameters, 0)):
        section = Section(objective, {"x": method(objective=objective, parameters=given)})
        with style.applied():
            figure = objectives.draw(section)
        assert len([axes for axes in figure.axes if axes.images]) == images
        assert len([axes for axes in figure.axes if axes.get_xlabel() == "log W"]) == 2


def test_the_hash_follows_the_parameters_but_not_the_label():
    one, same, other = (
        Section("grpo", {"x": changed})
        for changed in (method(), method(label="B"), method(parameters={"epsilon_high": 0.3}))
    )
    assert one.digest() == same.digest() != other.digest()


def test_formula_and_prose_of_a_docstring():
    text = "Return r * g.\n\ng = exp(x)\n\nA paper, where\n\n    y = 1\n\nx = 2 here."
    assert objectives.split_docstring(text) == (
        "r * g.\n\ng = exp(x)",
        ["A paper, where", "    y = 1", "x = 2 here."],
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a * b < c", r"a \* b \< c"),
        ("`a * b` * c", r"`a * b` \* c"),
        ("    a * b", "    a * b"),
        ("pi_old", "pi_old"),
    ],
)
def test_plain_text_is_no_markdown(text, expected):
    assert escape(text) == expected


def test_numbers_are_written_as_in_yaml():
    assert [number(value) for value in (None, 3.0, 0.0004, 0.265)] == [
        "null", "3", "0.0004", "0.265",
    ]  # fmt: skip
