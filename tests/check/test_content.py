import struct
import zlib

import numpy as np
import pyarrow as pa
import pytest
import safetensors.numpy

from respo.check.content import check_content
from respo.cli import UserError
from respo.files import write_record
from respo.parquet import write_parquet


def png(*chunks):
    """A PNG of the format's own parts: length, name, data, CRC-32 of name and data."""
    parts = [
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


WHOLE = {
    "a.png": png((b"IHDR", b"head"), (b"IDAT", b"pixels"), (b"IEND", b"")),
    "a.pdf": b"%PDF-1.4\n1 0 obj\n%%EOF\n",
    "a.html": b"<html>text</html>\n",
    "a.md": b"| a |\n",
    "a.safetensors": safetensors.numpy.save({"w": np.arange(4.0)}),
    "a.yaml": b"key: 1\n",
    "a.tsv": b"of another kind\n",
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_files(tmp_path, name):
    (tmp_path / name).write_bytes(WHOLE[name])
    check_content(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "damage", "message"),
    [
        ("a.png", lambda data: data[:-1], "not a whole PNG image"),
        ("a.png", lambda data: data[:-12], "not a whole PNG image"),
        ("a.png", lambda data: data + b"x", "not a whole PNG image"),
        ("a.png", lambda data: data.replace(b"pixels", b"pixelz"), "not a whole PNG image"),
        ("a.png", lambda data: b"", "not a whole PNG image"),
        ("a.pdf", lambda data: data[:-3], "is cut short: %%EOF is not its end"),
        ("a.html", lambda data: data[:-4], "is cut short: </html> is not its end"),
        ("a.md", lambda data: b"\xff", "not UTF-8 text"),
        ("a.md", lambda data: b" \n", "is empty"),
        ("a.safetensors", lambda data: data[:-1], "cut short or damaged"),
        ("a.safetensors", lambda data: data[:4], "cut short or damaged"),
        ("a.yaml", lambda data: b"key: [", "expected"),
    ],
)
def test_damaged_files(tmp_path, name, damage, message):
    path = tmp_path / name
    path.write_bytes(damage(WHOLE[name]))
    with pytest.raises(UserError, match=message) as error:
        check_content(path)
    assert str(error.value).startswith(str(path))


def test_every_column_and_record_is_read(tmp_path):
    path = tmp_path / "a.parquet"
    write_parquet(path, pa.table({"x": ["first"], "y": ["second"]}), {})
    check_content(path)
    path.write_bytes(path.read_bytes().replace(b"second", b"seconds"[1:], 1))
    with pytest.raises(UserError, match="CRC"):
        check_content(path)
    write_record(tmp_path / "a.json", {"x": 1})
    (tmp_path / "a.json").write_text((tmp_path / "a.json").read_text().replace("1", "2", 1))
    with pytest.raises(UserError, match="was changed or damaged after it was written"):
        check_content(tmp_path / "a.json")
