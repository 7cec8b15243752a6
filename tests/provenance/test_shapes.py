"""Records may be of another version, or edited by hand: one message, or as much as can be told."""

import copy
import json
import random
from contextlib import suppress

import pytest

from respo.cli import UserError
from respo.explain.text import lines
from respo.files import SEAL
from respo.provenance import read as module

TRIED = 20
ODD = (None, 0, -1.5, True, "x", "", [], [1, "y", None], {}, {"z": [{}]}, {"sha256": 3})


def places(value, path=()):
    """Yield the path to each part of a JSON value."""
    yield path
    if isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(child, (*path, key))


def changed(value, path, odd):
    """Return a copy with another part at a path."""
    if not path:
        return odd
    value = copy.deepcopy(value)
    part = value
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = odd
    return value


@pytest.mark.parametrize("name", ["cell.json", "train.json", "initial.json", "table"])
def test_records_of_any_shape(made, table, monkeypatch, name):
    rng = random.Random(name)
    study = made.study
    monkeypatch.setattr(module, "load_resolved_study", lambda path: study)
    files = {
        "cell.json": (made.cell, made.cell),
        "train.json": (made.folder / "train.json", made.cell),
        "initial.json": (made.path / "initial/qwen3-tiny/initial.json", made.folder),
        "table": (table.with_suffix(".sources.json"), table),
    }
    file, asked = files[name]
    record = json.loads(file.read_text())
    record.pop(SEAL, None)
    every = [path for path in places(record) if "problems" not in path]
    told = 0
    for path in rng.sample(every, min(len(every), TRIED)):
        file.write_text(json.dumps(changed(record, path, rng.choice(ODD))))
        with suppress(UserError):
            told += len(list(lines(module.read(asked), everything=True))) > 0
    assert told
