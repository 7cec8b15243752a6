"""Texts in LiveCodeBench's packing; pickles of anything else are refused without loading them."""

import base64
import os
import pickle
import zlib

import pytest

from respo.data.packed import text_of_pickle, unpack


def pack(value, protocol=None):
    return base64.b64encode(zlib.compress(pickle.dumps(value, protocol))).decode()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("text", ["", '[{"input": "1"}]', "ä\u2028\n" * 100, "x" * 70_000])
def test_a_text(text, protocol):
    assert unpack(pack(text, protocol)) == text


class Harm:
    """Would run a program if it were loaded."""

    def __reduce__(self):
        return os.system, ("touch harm",)


@pytest.mark.parametrize(
    "value", [Harm(), ["a"], ("a", "b"), {"a": "b"}, 1, b"a", None, ["a", Harm()], 1.5, print]
)
def test_anything_else_is_refused(value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="a pickle with "):
        unpack(pack(value, 2))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("pickled", "expected"),
    [
        (b"", "exhausted"),
        (b"N.", "a pickle with NONE"),
        (b".", "a pickle of 0 texts"),
        (b"X\x01\x00\x00\x00aX\x01\x00\x00\x00b.", "a pickle of 2 texts"),
        (b"X\xff\xff\xff\x7fa.", "expected 2147483647 bytes"),
        (b"X\x01\x00\x00\x00\xff.", "codec can't decode"),
        (b"\xff.", "opcode"),
    ],
)
def test_a_broken_pickle(pickled, expected):
    with pytest.raises(ValueError, match=expected):
        text_of_pickle(pickled)


def test_what_is_not_packed():
    with pytest.raises(ValueError, match=r"neither JSON nor base64 of zlib"):
        unpack("{'a'}")
    with pytest.raises(ValueError, match=r"neither JSON nor base64 of zlib"):
        unpack(base64.b64encode(b"plain").decode())
    whole = zlib.compress(pickle.dumps("text"))
    for data in (whole[:-3], whole + b"more"):
        with pytest.raises(ValueError, match="cut off or has something behind it"):
            unpack(base64.b64encode(data).decode())


def test_a_bomb_is_not_unpacked():
    # 100 MB of one letter are 100 kB; no more than the limit is ever held.
    bomb = base64.b64encode(zlib.compress(b"x" * 100_000_000)).decode()
    with pytest.raises(ValueError, match="more than 1000 bytes when decompressed"):
        unpack(bomb, max_bytes=1000)
