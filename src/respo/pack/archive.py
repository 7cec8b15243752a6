"""A tar archive whose bytes depend on its files alone."""

import gzip
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path

from respo.files import atomic_path

# 1980-01-01: times of files are nobody's business, and older ones make tar complain.
TIME = 315532800


def write_archive(out: Path, root: str, entries: Iterable[tuple[str, Path | bytes]]) -> None:
    """Write a `.tar.gz` atomically.

    Args:
        out: the archive.
        root: the one folder in it.
        entries: name below the root, and file or content, in the order of the archive.
    """
    with (
        atomic_path(out) as temporary,
        temporary.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=6, mtime=TIME) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for name, source in entries:
            entry = tarfile.TarInfo(f"{root}/{name}")
            entry.mtime, entry.mode = TIME, 0o644
            if isinstance(source, bytes):
                entry.size = len(source)
                archive.addfile(entry, io.BytesIO(source))
            else:
                entry.size = source.stat().st_size
                with source.open("rb") as file:
                    archive.addfile(entry, file)
