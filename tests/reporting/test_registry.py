from pathlib import Path
from typing import get_args

import jinja2
import pytest
from docutils.core import publish_parts

from respo.config.schema import FigureId, TableId
from respo.reporting import figures, registry, tables

CAPTIONS = Path(__file__).parents[2] / "workflow" / "report"


def test_modules_are_the_ids_that_a_study_may_name():
    assert registry.ids(tables) == sorted(get_args(TableId))
    assert registry.ids(figures) == sorted(get_args(FigureId))


def test_modules_have_their_function():
    for id_ in registry.ids(tables):
        module = registry.module(tables, id_)
        assert all(callable(getattr(module, name)) for name in ("applies", "inputs", "make"))
        assert all(isinstance(getattr(module, name), tuple) for name in ("PRINTED", "SECTIONS"))
    assert all(callable(registry.module(figures, id_).draw) for id_ in registry.ids(figures))


@pytest.mark.parametrize("name", ["workflow", *get_args(TableId), *get_args(FigureId)])
def test_captions_are_valid_text(name):
    class Snakemake:
        config = {"study": "tried"}  # noqa: RUF012

    text = jinja2.Template((CAPTIONS / f"{name}.rst").read_text(encoding="utf-8"))
    # Level 2 turns every warning of docutils into an error.
    publish_parts(
        text.render(snakemake=Snakemake), writer="html", settings_overrides={"halt_level": 2}
    )
