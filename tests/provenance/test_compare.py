"""Weights that are compared, and those that are too large for it."""

import hashlib
import os

import pytest

from respo.provenance import compare
from respo.provenance.compare import source, weights
from respo.weight_files import INDEX, WEIGHTS, policy_hash, write_sums


@pytest.fixture
def folder(tmp_path):
    (tmp_path / WEIGHTS).write_bytes(b"1234")
    return tmp_path


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(compare, "LARGE", 3)


def test_a_source_is_told_with_the_hash_that_it_had(tmp_path):
    path = tmp_path / "a"
    then, now = (hashlib.sha256(text).hexdigest() for text in (b"then", b"now"))
    told = {"what": "scores", "path": str(path), "sha256": then}
    assert source("scores", path, then, then) == told | {"state": "unchanged"}
    assert source("scores", path, then, now) == told | {"state": "changed"}
    assert source("scores", path, then, None) == told | {"state": "missing"}
    nothing = told | {"sha256": None}
    assert source("scores", path, None, now) == nothing | {"state": "no record"}
    os.mkfifo(path)
    assert source("scores", path, then, None) == told | {"state": "no file"}


def test_weights_are_read(folder):
    sha256 = policy_hash(folder)
    path = str(folder)
    assert weights("checkpoint", folder, sha256) == {
        **{"what": "checkpoint", "path": path, "sha256": sha256, "state": "unchanged"}
    }
    assert weights("checkpoint", folder, "0")["state"] == "changed"
    assert weights("checkpoint", folder, None)["state"] == "no record"
    assert weights("checkpoint", folder / "absent", sha256)["state"] == "missing"


def test_an_index_that_is_a_pipe_is_not_read(folder):
    os.mkfifo(folder / INDEX)
    assert weights("checkpoint", folder, "0")["state"] == "changed"  # without the index
    (folder / WEIGHTS).unlink()
    assert weights("checkpoint", folder, "0")["state"] == "no file"


def test_large_weights_are_compared_by_their_list(folder, large):
    sha256 = policy_hash(folder)
    assert weights("checkpoint", folder, sha256)["state"] == "not compared"
    write_sums(folder)
    assert weights("checkpoint", folder, sha256)["state"] == "listed"
    assert weights("checkpoint", folder, "0")["state"] == "changed"
    assert weights("checkpoint", folder, sha256, any_size=True)["state"] == "unchanged"
    (folder / "SHA256SUMS").write_text("x")  # damaged: it says nothing
    assert weights("checkpoint", folder, sha256)["state"] == "not compared"
    (folder / WEIGHTS).unlink()
    assert weights("checkpoint", folder, sha256)["state"] == "missing"
