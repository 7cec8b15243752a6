from contextlib import suppress

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from respo import parquet
from respo.cli import UserError


def test_parquet_keeps_its_provenance(tmp_path):
    path = tmp_path / "deep" / "a.parquet"
    parquet.write_parquet(path, pa.table({"x": [1, 2]}), {"seed": 3})
    table = parquet.read_parquet(path, ["x"])
    assert table.to_pydict() == {"x": [1, 2]}
    assert parquet.made_from(table) == {"seed": 3}


def test_bad_parquet(tmp_path):
    path = tmp_path / "a.parquet"
    with pytest.raises(UserError, match="no such file"):
        parquet.read_parquet(path)
    parquet.write_parquet(path, pa.table({"x": list(range(1000))}), {})
    with pytest.raises(UserError, match="column 'y' is missing; there are x"):
        parquet.read_parquet(path, ["y"])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(
        UserError, match=r"not a readable Parquet file .*Delete it and start again\.$"
    ):
        parquet.read_parquet(path)


def test_rows_are_taken_from_their_row_groups(tmp_path):
    path, schema = tmp_path / "a.parquet", pa.schema([("x", pa.int64()), ("y", pa.string())])
    with parquet.parquet_writer(path, schema, {}) as write:
        for first in (0, 3, 6):
            numbers = list(range(first, min(first + 3, 7)))
            write(pa.table({"x": numbers, "y": [f"row {n}" for n in numbers]}))
    assert pq.ParquetFile(path).num_row_groups == 3
    assert parquet.parquet_take(path, ["y"], [6, 0, 2, 0]) == [
        {"y": f"row {n}"} for n in (6, 0, 2, 0)
    ]
    assert parquet.parquet_take(path, ["y"], []) == []
    with pytest.raises(UserError, match="has 7 rows, and no row 8"):
        parquet.parquet_take(path, ["x"], [0, 7])
    with pytest.raises(UserError, match="column 'z' is missing; there are x, y"):
        parquet.parquet_take(path, ["z"], [0])


def test_flipped_bits_of_a_page_are_found(tmp_path):
    """Values before the footer: without the checksums most flips read as other numbers."""
    path = tmp_path / "a.parquet"
    table = pa.table({"x": pa.array(range(1000), pa.int32())})
    parquet.write_parquet(path, table, {})
    whole = path.read_bytes()
    values = pq.read_metadata(path).row_group(0).column(0)
    first, last = values.dictionary_page_offset, values.data_page_offset
    for position in range(first + 40, last, 97):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << position % 8
        path.write_bytes(damaged)
        with pytest.raises(UserError, match=r"a\.parquet: not a readable .* \(.*CRC.*\)\. Delete"):
            parquet.read_parquet(path)


def test_no_damage_of_a_file_is_a_traceback(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_parquet(path, pa.table({"x": ["a", "b"], "y": [1, 2]}), {"seed": 3})
    whole = path.read_bytes()
    for position in range(len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0x80
        path.write_bytes(damaged)
        with suppress(UserError):
            parquet.read_parquet(path)


class Every:
    """Every column."""

    def __contains__(self, name):
        return True


def content(path):
    """All that a file says, by each of the readers."""
    table = parquet.read_parquet(path)
    batches = list(parquet.parquet_batches(path, Every()))
    assert pa.Table.from_batches(batches).equals(table)
    assert parquet.parquet_made_from(path) == parquet.made_from(table)
    assert (parquet.parquet_columns(path), parquet.parquet_rows(path)) == (
        table.column_names,
        table.num_rows,
    )
    rows = parquet.parquet_take(path, table.column_names, range(table.num_rows))
    assert rows == table.to_pylist()
    return table.schema.names, table.schema.types, rows, parquet.made_from(table)


@pytest.mark.parametrize("writer", ["whole", "tables", "rows"])
def test_no_flipped_bit_changes_what_is_read(tmp_path, writer):
    """A bit of every third byte of a small file, by each writer: found, or without effect."""
    path, provenance = tmp_path / "a.parquet", {"seed": 3, "sha256": "0" * 64}
    table = pa.table({"x": ["a", "b"], "y": [1, 2]})
    if writer == "whole":
        parquet.write_parquet(path, table, provenance)
    elif writer == "tables":
        with parquet.parquet_writer(path, table.schema, provenance) as write:
            write(table)
    else:
        parquet.write_parquet_rows(path, table.schema, table.to_pylist(), lambda: provenance)
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
    parquet.write_parquet(path, pa.table({"score": [1.0]}), {})
    data = bytearray(path.read_bytes())
    data[data.rindex(b"score")] ^= 1
    path.write_bytes(data)
    message = r"a\.parquet: its footer was .* damaged .*\. Delete it and start again\.$"
    for read in (parquet.read_parquet, parquet.parquet_made_from, parquet.parquet_columns):
        with pytest.raises(UserError, match=message):
            read(path)


def test_a_damaged_head_of_a_page_does_not_lose_rows_silently(tmp_path):
    """The head has no checksum; with some of these flips batches come to their end too early."""
    path = tmp_path / "a.parquet"
    table = pa.table({"x": [f"text {i % 7}" for i in range(200)]})
    parquet.write_parquet(path, table, {})
    whole = path.read_bytes()
    column = pq.read_metadata(path).row_group(0).column(0)
    lost = 0
    for position in range(8 * column.data_page_offset, 8 * (column.data_page_offset + 40)):
        damaged = bytearray(whole)
        damaged[position // 8] ^= 1 << position % 8
        path.write_bytes(damaged)
        try:
            batches = list(parquet.parquet_batches(path, ["x"]))
        except UserError as error:
            lost += "is damaged: of its 200 rows, " in str(error)
        else:
            assert pa.Table.from_batches(batches).equals(table)
    assert lost > 0


def test_a_provenance_that_was_changed_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_parquet(path, pa.table({"x": [1]}), {"seed": 3})
    metadata = pq.read_schema(path).metadata
    assert set(metadata) == {b"respo", b"respo_sha256"}
    changed = metadata | {b"respo": b'{"seed": 4}'}
    pq.write_table(pa.table({"x": [1]}).replace_schema_metadata(changed), path)
    with pytest.raises(UserError, match=r"a\.parquet: metadata 'respo' was changed or damaged"):
        parquet.read_parquet(path)


def test_text_that_is_not_utf8(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_parquet(path, pa.table({"x": pa.array([b"\xff"]).view(pa.string())}), {})
    with pytest.raises(UserError, match=r"a\.parquet: not a readable Parquet file \(.*UTF8"):
        parquet.read_parquet(path)


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
        parquet.read_parquet(path)


def test_files_of_others_have_no_provenance(tmp_path):
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    assert parquet.made_from(parquet.read_parquet(tmp_path / "a.parquet")) == {}
