import errno
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import suppress

import numpy
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from respo import cli, files
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


def test_parquet_keeps_its_provenance(tmp_path):
    path = tmp_path / "deep" / "a.parquet"
    files.write_parquet(path, pa.table({"x": [1, 2]}), {"seed": 3})
    table = files.read_parquet(path, ["x"])
    assert table.to_pydict() == {"x": [1, 2]}
    assert files.made_from(table) == {"seed": 3}


def test_bad_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    with pytest.raises(UserError, match="no such file"):
        files.read_parquet(path)
    files.write_parquet(path, pa.table({"x": list(range(1000))}), {})
    with pytest.raises(UserError, match="column 'y' is missing; there are x"):
        files.read_parquet(path, ["y"])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(
        UserError, match=r"not a readable Parquet file .*Delete it and start again\.$"
    ):
        files.read_parquet(path)


def test_rows_are_taken_from_their_row_groups(tmp_path):
    path, schema = tmp_path / "a.parquet", pa.schema([("x", pa.int64()), ("y", pa.string())])
    with files.parquet_writer(path, schema, {}) as write:
        for first in (0, 3, 6):
            numbers = list(range(first, min(first + 3, 7)))
            write(pa.table({"x": numbers, "y": [f"row {n}" for n in numbers]}))
    assert pq.ParquetFile(path).num_row_groups == 3
    assert files.parquet_take(path, ["y"], [6, 0, 2, 0]) == [
        {"y": f"row {n}"} for n in (6, 0, 2, 0)
    ]
    assert files.parquet_take(path, ["y"], []) == []
    with pytest.raises(UserError, match="has 7 rows, and no row 8"):
        files.parquet_take(path, ["x"], [0, 7])
    with pytest.raises(UserError, match="column 'z' is missing; there are x, y"):
        files.parquet_take(path, ["z"], [0])


def test_flipped_bits_of_a_page_are_found(tmp_path):
    """Values before the footer: without the checksums most flips read as other numbers."""
    path = tmp_path / "a.parquet"
    table = pa.table({"x": pa.array(range(1000), pa.int32())})
    files.write_parquet(path, table, {})
    whole = path.read_bytes()
    values = pq.read_metadata(path).row_group(0).column(0)
    first, last = values.dictionary_page_offset, values.data_page_offset
    for position in range(first + 40, last, 97):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=r"a\.parquet: not a readable .* \(.*CRC.*\)\. Delete"):
            files.read_parquet(path)


def test_no_damage_of_a_file_is_a_traceback(tmp_path):
    path = tmp_path / "a.parquet"
    files.write_parquet(path, pa.table({"x": ["a", "b"], "y": [1, 2]}), {"seed": 3})
    whole = path.read_bytes()
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0x80
        path.write_bytes(damaged)
        with suppress(UserError):
            files.read_parquet(path)


class Every:
    """Every column."""

    def __contains__(self, name):
        return True


def content(path):
    """All that a file says, by each of the readers."""
    table = files.read_parquet(path)
    batches = list(files.parquet_batches(path, Every()))
    assert pa.Table.from_batches(batches).equals(table)
    assert files.parquet_made_from(path) == files.made_from(table)
    assert (files.parquet_columns(path), files.parquet_rows(path)) == (
        table.column_names,
        table.num_rows,
    )
    rows = files.parquet_take(path, table.column_names, range(table.num_rows))
    assert rows == table.to_pylist()
    return table.schema.names, table.schema.types, rows, files.made_from(table)


@pytest.mark.parametrize("writer", ["whole", "tables", "rows"])
def test_no_flipped_bit_changes_what_is_read(tmp_path, writer):
    """A bit of every third byte of a small file, by each writer: found, or without effect."""
    path, provenance = tmp_path / "a.parquet", {"seed": 3, "sha256": "0" * 64}
    table = pa.table({"x": ["a", "b"], "y": [1, 2]})
    if writer == "whole":
        files.write_parquet(path, table, provenance)
    elif writer == "tables":
        with files.parquet_writer(path, table.schema, provenance) as write:
            write(table)
    else:
        files.write_parquet_rows(path, table.schema, table.to_pylist(), lambda: provenance)
    expected = (["x", "y"], [pa.string(), pa.int64()], table.to_pylist(), provenance)
    assert content(path) == expected
    whole = path.read_bytes()
    for position in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        with suppress(UserError):
            assert content(path) == expected


def test_a_changed_footer_is_told_with_the_remedy(tmp_path):
    path = tmp_path / "a.parquet"
    files.write_parquet(path, pa.table({"score": [1.0]}), {})
    data = bytearray(path.read_bytes())
    data[data.rindex(b"score")] ^= 1
    path.write_bytes(data)
    message = r"a\.parquet: its footer was .* damaged .*\. Delete it and start again\.$"
    for read in (files.read_parquet, files.parquet_made_from, files.parquet_columns):
        with pytest.raises(UserError, match=message):
            read(path)


def test_a_damaged_head_of_a_page_does_not_lose_rows_silently(tmp_path):
    """The head has no checksum; with some of these flips batches come to their end too early."""
    path = tmp_path / "a.parquet"
    table = pa.table({"x": [f"text {i % 7}" for i in range(200)]})
    files.write_parquet(path, table, {})
    whole = path.read_bytes()
    column = pq.read_metadata(path).row_group(0).column(0)
    lost = 0
    for position in range(8 * column.data_page_offset, 8 * (column.data_page_offset + 40)):
        damaged = bytearray(whole)
        damaged[position // 8] ^= 1 << position % 8
        path.write_bytes(damaged)
        try:
            batches = list(files.parquet_batches(path, ["x"]))
        except UserError as error:
            lost += "is damaged: of its 200 rows, " in str(error)
        else:
            assert pa.Table.from_batches(batches).equals(table)
    assert lost > 0


def test_a_provenance_that_was_changed_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    files.write_parquet(path, pa.table({"x": [1]}), {"seed": 3})
    metadata = pq.read_schema(path).metadata
    assert set(metadata) == {b"respo", b"respo_sha256"}
    changed = metadata | {b"respo": b'{"seed": 4}'}
    pq.write_table(pa.table({"x": [1]}).replace_schema_metadata(changed), path)
    with pytest.raises(UserError, match=r"a\.parquet: metadata 'respo' was changed or damaged"):
        files.read_parquet(path)


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


def test_text_that_is_not_utf8(tmp_path):
    path = tmp_path / "a.parquet"
    files.write_parquet(path, pa.table({"x": pa.array([b"\xff"]).view(pa.string())}), {})
    with pytest.raises(UserError, match=r"a\.parquet: not a readable Parquet file \(.*UTF8"):
        files.read_parquet(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", r"metadata 'respo' is not JSON"),
        (b"\xff", r"metadata 'respo' is not JSON"),
        (b"[" * 100_000, r"metadata 'respo' is not JSON"),
        (b"[]", r"metadata 'respo' is not a JSON object"),
    ],
)
def test_broken_provenance_names_the_file(tmp_path, text, message):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"x": [1]}).replace_schema_metadata({b"respo": text}), path)
    with pytest.raises(UserError, match=rf"a\.parquet: {message}.*Delete it and start again\.$"):
        files.read_parquet(path)


def test_files_of_others_have_no_provenance(tmp_path):
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    assert files.made_from(files.read_parquet(tmp_path / "a.parquet")) == {}


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


@pytest.mark.parametrize(
    ("error", "code", "expected"),
    [
        (UserError("x.yaml: seeds: wrong"), "error: x.yaml: seeds: wrong", ""),
        (OSError(errno.ENOSPC, "No space", "f"), "error: f: the disk is full.", ""),
        (PermissionError(errno.EACCES, "Permission denied", "f"), "error: f: Permission", ""),
        (KeyboardInterrupt(), "130", "the next start continues"),
    ],
)
def test_a_command_ends_with_one_message(capsys, error, code, expected):
    @cli.command
    def main():
        raise error

    with pytest.raises(SystemExit) as end:
        main()
    assert str(end.value.code).startswith(code)
    assert expected in capsys.readouterr().err


def test_an_error_of_our_own_making_keeps_its_traceback():
    @cli.command
    def main():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        main()


def test_a_reader_that_went_away_ends_the_work_quietly():
    code = "import sys, respo.cli as c; c.command(lambda: print('x' * 10**6))()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_the_environment_tells_the_machine_and_no_name_of_it():
    told = files.environment("numpy")
    assert told["processor"].endswith(f", {os.cpu_count()} threads")
    assert told["numpy"] == numpy.__version__
    assert socket.gethostname() not in json.dumps(told)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The package as `pip install` would copy it, below a folder."""
    copy = tmp_path / "site-packages" / "respo" / "files.py"
    copy.parent.mkdir(parents=True)
    shutil.copy(files.__file__, copy)
    monkeypatch.setattr(files, "__file__", str(copy))
    return tmp_path


@pytest.mark.parametrize("within", ["a checkout of something else", "no checkout"])
def test_an_installed_package_is_of_no_revision(installed, within):
    if within != "no checkout":
        subprocess.run(["git", "init", "--quiet", installed], check=True)
    assert files.code_revision.__wrapped__() == "not from a git checkout"


def test_a_revision_that_git_does_not_tell(installed, monkeypatch):
    (installed / ".git").mkdir()  # nothing that git would accept
    assert files.code_revision.__wrapped__() == "unknown"
    monkeypatch.setenv("PATH", "")
    assert files.code_revision.__wrapped__() == "unknown"


def test_a_revision_tells_code_that_is_not_committed(installed, monkeypatch):
    monkeypatch.setattr(files, "CODE", (":/site-packages",))

    def git(*arguments):
        words = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-C", installed, *arguments]
        return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()

    code = installed / "site-packages" / "respo" / "files.py"
    git("init", "--quiet")
    git("add", code)
    git("commit", "--quiet", "--message", "one")
    revision = files.code_revision.__wrapped__()
    assert revision == git("rev-parse", "HEAD")
    code.write_text(code.read_text() + "# more")
    assert files.code_revision.__wrapped__() == f"{revision}-dirty"
