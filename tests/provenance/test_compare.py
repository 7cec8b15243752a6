"""Weights that are compared, and those that are too large for it."""

import pytest

from respo.provenance import compare
from respo.provenance.compare import weights
from respo.weight_files import WEIGHTS, policy_hash, write_sums


@pytest.fixture
def folder(tmp_path):
    (tmp_path / WEIGHTS).write_bytes(b"1234")
    return tmp_path


@pytest.fixture
def large(monkeypatch):
    monkeypatch.setattr(compare, "LARGE", 3)


def test_weights_are_read(folder):
    sha256 = policy_hash(folder)
    path = str(folder)
    assert weights("checkpoint", folder, sha256) == {
        **{"what": "checkpoint", "path": path, "sha256": sha256, "state": "unchanged"}
    }
    assert weights("checkpoint", folder, "0")["state"] == "changed"
    assert weights("checkpoint", folder, None)["state"] == "no record"
    assert weights("checkpoint", folder / "absent", sha256)["state"] == "missing"


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
