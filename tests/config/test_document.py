"""What is generated from the schema is in step with it: run `python -m respo.config.document`."""

import json
from typing import Annotated, Literal

import jsonschema
import pytest
import yaml
from pydantic import Field

from respo.config import document
from respo.config.schema import Strict

FOLDERS = {kind: f"{kind}s" for kind in ("method", "model", "dataset", "benchmark")}
FOLDERS["study"] = "studies"


@pytest.mark.parametrize("kind", document.KINDS)
def test_the_json_schema_is_in_step(kind):
    path = document.CONFIG / "schema" / f"{kind}.json"
    assert path.read_text(encoding="utf-8") == document.json_schema(kind)


def test_the_readme_is_in_step_and_has_every_kind():
    text = (document.CONFIG / "README.md").read_text(encoding="utf-8")
    assert text == document.readme(text)
    assert [match[2] for match in document.TABLE.finditer(text)] == list(document.KINDS)


@pytest.mark.parametrize("kind", FOLDERS)
def test_every_file_satisfies_its_json_schema(kind):
    schema = json.loads(document.json_schema(kind))
    files = sorted((document.CONFIG / FOLDERS[kind]).glob("*.yaml"))
    assert files
    for file in files:
        jsonschema.validate(yaml.safe_load(file.read_text()), schema)
        # The editor's schema is named in the file.
        assert f"$schema=../schema/{kind}.json" in file.read_text()


class Cat(Strict):
    kind: Literal["cat"] = Field(description="what it is")
    lives: int = Field(default=9, description="how many")


class Dog(Strict):
    kind: Literal["dog"] = Field(description="what it is")


def test_a_union_has_a_table_for_each_of_its_models():
    table = document.key_table(Annotated[Cat | Dog, Field(discriminator="kind")])
    head = "| key | value | default | meaning |\n|---|---|---|---|\n"
    assert table == (
        f"With `kind: cat`:\n\n{head}"
        "| `kind` | `cat` | required | what it is |\n| `lives` | integer | `9` | how many |\n\n"
        f"With `kind: dog`:\n\n{head}| `kind` | `dog` | required | what it is |\n"
    )
