import hashlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from respo.footer import check_footer, seal_footer

TABLE = pa.table({"x": ["a", "b"], "y": [1, 2]})
CHANGED = "its footer was changed or damaged after the file was written"


@pytest.fixture
def sealed(tmp_path):
    """A file, and where its footer begins, by the format's own definition."""
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path)
    seal_footer(path)
    data = path.read_bytes()
    return path, len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def test_the_hash_lies_before_the_footer(tmp_path, sealed):
    path, start = sealed
    pq.write_table(TABLE, tmp_path / "without.parquet")
    without, data = (tmp_path / "without.parquet").read_bytes(), path.read_bytes()
    seal = b"respo footer sha256:" + hashlib.sha256(data[start:]).digest()
    assert data == without[: start - len(seal)] + seal + data[start:]
    assert data[start:] == without[start - len(seal) :]


def test_readers_of_others_do_not_notice_it(tmp_path, sealed):
    path, _ = sealed
    check_footer(path)
    assert pq.read_table(path).equals(TABLE)
    # What they write from it is theirs: no hash of ours is left in it.
    pq.write_table(pq.read_table(path).slice(1), tmp_path / "b.parquet")
    check_footer(tmp_path / "b.parquet")


def test_every_bit_of_the_footer_and_of_its_hash_counts(sealed):
    path, start = sealed
    whole = path.read_bytes()
    for place in range(start - 32, len(whole)):
        if len(whole) - 8 <= place < len(whole) - 4:
            continue  # the length: the hash is sought elsewhere, and no footer lies there
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=CHANGED):
            check_footer(path)


def test_another_length_of_the_footer_is_no_parquet_file(sealed):
    path, _ = sealed
    whole = path.read_bytes()
    for bit in range(32):
        damaged = bytearray(whole)
        damaged[len(whole) - 8 + bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        check_footer(path)
        with pytest.raises((pa.ArrowException, OSError)):
            pq.read_table(path)


@pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1\xff\xff\xff\xffPAR1"])
def test_what_is_no_parquet_file_has_no_hash(tmp_path, content):
    (tmp_path / "a.parquet").write_bytes(content)
    check_footer(tmp_path / "a.parquet")


def test_a_file_without_pages(tmp_path):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({}), path)
    seal_footer(path)
    check_footer(path)
    assert pq.read_table(path).num_columns == 0
