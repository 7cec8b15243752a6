import errno
import hashlib
import json
import os
import subprocess
import sys
import time

import pytest

from respo import files
from respo.cli import UserError

KILLED = """
import os, signal, sys
from pathlib import Path
from respo import files

with files.atomic_path(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_writer_left_goes_at_the_next_write(tmp_path):
    path = tmp_path / "a[1].txt"
    subprocess.run([sys.executable, "-c", KILLED, path], check=False)
    (left,) = tmp_path.iterdir()
    long_ago = time.time() - 60
    os.utime(left, (long_ago, long_ago))
    with files.atomic_path(path) as alive:
        assert not left.exists()
        # One that somebody is writing stays, however long it takes.
        os.utime(alive, (long_ago, long_ago))
        files.write_text(path, "meanwhile")
        assert alive.exists()
        alive.write_text("new")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert path.read_text() == "new"


def test_an_interrupted_write_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "a.txt"
    files.write_text(path, "old")
    with pytest.raises(FileNotFoundError), files.atomic_path(path) as temporary:
        temporary.with_name("nothing").rename(temporary)
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_an_error_names_the_file_that_the_user_knows(tmp_path):
    path = tmp_path / "a.txt"
    with pytest.raises(OSError, match="full") as error, files.atomic_path(path):
        raise OSError(errno.ENOSPC, "disk full", "/somewhere/temporary")
    assert error.value.filename == str(path)


def test_a_folder_is_made_and_left_empty(tmp_path):
    files.check_writable(tmp_path / "a" / "b")
    assert list((tmp_path / "a" / "b").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "a").write_text("a file, not a folder")
    with pytest.raises(OSError, match="a/b") as error:
        files.check_writable(tmp_path / "a" / "b")
    assert error.value.filename == str(tmp_path / "a" / "b")


def test_permissions_follow_the_umask(tmp_path):
    files.write_text(tmp_path / "a.txt", "x")
    (tmp_path / "b.txt").write_text("x")
    assert (tmp_path / "a.txt").stat().st_mode == (tmp_path / "b.txt").stat().st_mode


def test_a_record_holds_a_hash_of_itself(tmp_path):
    path = tmp_path / "a.json"
    files.write_record(path, {"b": 0.1, "a": {2: "x", 10: [1, None]}})
    record = files.read_json(path)
    # Taken over the canonical text, which `python -m json.tool --sort-keys` would give too.
    text = b'{"a": {"10": [1, null], "2": "x"}, "b": 0.1}'
    assert record["self_sha256"] == hashlib.sha256(text).hexdigest()
    # Another layout is the same record, another number is not.
    path.write_text(json.dumps(dict(reversed(record.items()))))
    assert files.read_json(path) == record
    path.write_text(path.read_text().replace("0.1", "0.3"))
    with pytest.raises(UserError, match=r"a\.json: was changed or damaged .*Delete it and make"):
        files.read_json(path)


def test_bad_json(tmp_path):
    path = tmp_path / "a.json"
    with pytest.raises(UserError, match="no such file"):
        files.read_json(path)
    for content in (b'{"a": ', b"\xff", b"[" * 100_000, b"1" * 5000):
        path.write_bytes(content)
        with pytest.raises(UserError, match=r"a\.json: not valid JSON .*Delete it"):
            files.read_json(path)


def test_json_has_no_nan(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        files.write_json(tmp_path / "a.json", float("nan"))


def test_sha256_is_that_of_the_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    # The standard's own example (FIPS 180-2, B.1).
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert files.sha256_of(tmp_path / "a") == expected
