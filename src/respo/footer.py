"""A hash of a Parquet file's footer, which the format leaves without a checksum.

The footer tells names and types of the columns, the number of rows and where each page lies: a
changed bit in it may drop rows or a column. Its hash lies just before it, where readers, who find
everything from the end of a file, never look:

    PAR1  pages  mark (20 bytes)  SHA-256 (32 bytes)  footer  its length (4 bytes)  PAR1
"""

import hashlib
import os
from pathlib import Path
from typing import BinaryIO

MARK = b"respo footer sha256:"  # the reader of scores, which imports nothing, has it too
SEAL_SIZE = len(MARK) + hashlib.sha256().digest_size
TAIL = 8  # bytes after the footer: its length and the name of the format


def seal_footer(path: Path) -> None:
    """Insert the hash into a file that is without one."""
    with path.open("rb+") as file:
        size = _footer_size(file)
        file.seek(-size, os.SEEK_END)
        footer = file.read()
        file.seek(-size, os.SEEK_END)
        file.write(MARK + hashlib.sha256(footer).digest() + footer)


def check_footer(path: Path) -> None:
    """Compare the footer with its hash; a file without one, of others or older, is as good.

    Raises:
        ValueError: the footer is not what was written.
        FileNotFoundError: there is no such file.
    """
    with path.open("rb") as file:
        size = _footer_size(file) + SEAL_SIZE
        if file.seek(0, os.SEEK_END) < size:
            return
        file.seek(-size, os.SEEK_END)
        seal, footer = file.read(SEAL_SIZE), file.read()
    if seal.startswith(MARK) and seal != MARK + hashlib.sha256(footer).digest():
        raise ValueError("its footer was changed or damaged after the file was written")


def _footer_size(file: BinaryIO) -> int:
    """Return the bytes of the footer and its tail, as the file tells them."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - TAIL, 0))
    return int.from_bytes(file.read(4), "little") + TAIL
