"""Is a file whole in itself? Read to the end, with the checksums that its format has."""

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

from respo.cli import UserError
from respo.config.yaml import read_yaml
from respo.files import read_json
from respo.parquet import parquet_batches

PNG = b"\x89PNG\r\n\x1a\n"
END = {".html": b"</html>", ".pdf": b"%%EOF"}


class _All:
    """Every column."""

    def __contains__(self, name: object) -> bool:
        return True


def check_content(path: Path) -> None:
    """Read a file to its end.

    Raises:
        UserError: it is cut short or damaged, as far as its format tells.
        OSError: it cannot be read.
    """
    if check := CHECKS.get(path.suffix):
        check(path)


def _parquet(path: Path) -> None:
    for _ in parquet_batches(path, _All()):
        pass


def _png(path: Path) -> None:
    """Check the sum that each chunk ends with."""
    data = path.read_bytes()
    place, name = len(PNG), b""
    while data.startswith(PNG) and name != b"IEND" and place + 12 <= len(data):
        (length,) = struct.unpack_from(">I", data, place)
        name = data[place + 4 : place + 8]
        end = place + 8 + length
        if data[end : end + 4] != struct.pack(">I", zlib.crc32(data[place + 4 : end])):
            break
        place = end + 4
    if name != b"IEND" or place != len(data):
        raise UserError(f"{path}: not a whole PNG image")


def _text(path: Path) -> None:
    try:
        whole = path.read_bytes().decode()
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8 text") from None
    if not whole.strip():
        raise UserError(f"{path}: is empty")


def _ended(path: Path) -> None:
    """Check the last words of a format that has no sums."""
    size = path.stat().st_size
    with path.open("rb") as file:
        file.seek(max(0, size - 64))
        if not file.read().rstrip().endswith(END[path.suffix]):
            raise UserError(f"{path}: is cut short: {END[path.suffix].decode()} is not its end")


def _safetensors(path: Path) -> None:
    """Check that a safetensors file is as long as its header says.

    Raises:
        UserError: it is not, or it has no such header.
    """
    # Imported here: results without weights need it not.
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "numpy"):
            pass
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: cut short or damaged ({error})") from None


CHECKS: dict[str, Callable[[Path], object]] = {
    ".parquet": _parquet,
    ".json": read_json,
    ".yaml": read_yaml,
    ".png": _png,
    ".pdf": _ended,
    ".html": _ended,
    ".csv": _text,
    ".md": _text,
    ".tex": _text,
    ".safetensors": _safetensors,
}
