"""A results folder that is checked: its files, their hashes, and how far the check is."""

import os
import sys
import time
from pathlib import Path
from typing import Any

from respo.check.findings import Findings, without
from respo.check.records import wrong_shape
from respo.cli import UserError, printable
from respo.config import ResolvedStudy, load_resolved_study
from respo.files import SEAL, read_json, sha256_of
from respo.parquet import parquet_made_from
from respo.provenance import targets
from respo.provenance.inside import MANIFEST, leads_out, wrong_file
from respo.provenance.sources import CONFIG

PROGRESS_SECONDS = 5.0


class Folder:
    """Reads a results folder or an unpacked pack; remembers the hash of each file.

    Attributes:
        path: of the folder.
        study: that it is of.
        found: what is wrong with it.
        left_out: kinds of files that a pack comes without, empty for a results folder.
        papers: the folder of the papers' numbers.
        follow: whether links may lead out of the folder: in a pack, they may not.
        followed: names of the links that do.
        read: bytes that were hashed.
        irregular: whether something lies there that is no file of the folder: others than the
            check must not read it.
    """

    def __init__(self, path: Path) -> None:
        """Read study and manifest.

        Raises:
            UserError: there is no study, or one of them is damaged: nothing else can be checked.
        """
        self.path = path
        self._root = Path(os.path.realpath(path))
        for name in (MANIFEST, "study.yaml"):
            self.follow = name != MANIFEST and not (path / MANIFEST).is_file()
            if wrong := self.wrong(name):
                raise UserError(f"{path / name}: {wrong}")
        if not (path / "study.yaml").is_file():
            raise UserError(f"{path / 'study.yaml'}: no such file; {_remedy(path)}")
        self.manifest: dict[str, Any] = {}
        if (path / MANIFEST).is_file():
            self.manifest = _manifest(path / MANIFEST)
        self.study: ResolvedStudy = load_resolved_study(path / "study.yaml")
        self.found = Findings()
        own = path / "reference"
        self.papers = own if own.is_dir() else CONFIG / "reference"
        self.read = 0
        self.irregular = False
        self.followed: list[str] = []
        self._hashes: dict[str, str] = {}
        self._told = time.monotonic()

    @property
    def left_out(self) -> list[str]:
        """Kinds of files that a pack comes without."""
        return list(self.manifest.get("left_out", ()))

    def has(self, name: str) -> bool:
        """Tell whether a file is there and nothing was found wrong with it."""
        return name not in self.found.bad and self.is_file(name)

    def is_file(self, name: str) -> bool:
        """Tell whether a file is there, and is one of this folder."""
        return (self.path / name).is_file() and self.wrong(name) is None

    def leads_out(self, name: str) -> bool:
        """Tell whether a name leads out of the folder, by a link, though it may not."""
        return not self.follow and leads_out(self._root, self.path / name)

    def wrong(self, name: str) -> str | None:
        """Tell why what lies there is no file of this folder; None if it is one, or not there."""
        return wrong_file(self._root, self.path / name, self.follow)

    def sha256(self, name: str) -> str:
        """Hash a file of the folder, once."""
        if name not in self._hashes:
            self._hashes[name] = sha256_of(self.path / name)
            self.read += (self.path / name).stat().st_size
            self.tell(name)
        return self._hashes[name]

    def other(self, path: Path) -> str:
        """Hash a file from elsewhere, once."""
        if str(path) not in self._hashes:
            self._hashes[str(path)] = sha256_of(path)
        return self._hashes[str(path)]

    def json(self, name: str) -> dict[str, Any] | None:
        """Read a record; None, and a finding, where it is missing, damaged or of another shape."""
        if not self.has(name):
            return None
        try:
            value = read_json(self.path / name)
        except UserError as error:
            self.found.damaged(name, without(self.path / name, str(error)), name)
            return None
        if wrong := wrong_shape(name, value):
            self.found.damaged(name, f"was not written by this project: {wrong}", name)
            return None
        if SEAL not in value:
            self.found.note(name, f"has no {SEAL}: an older version wrote it, or it was edited")
        return value

    def made_from(self, name: str) -> dict[str, Any] | None:
        """Read the provenance of a Parquet file; None where there is no good file."""
        return parquet_made_from(self.path / name) if self.has(name) else None

    def tell(self, name: str) -> None:
        """Say every few seconds how far the check is."""
        if time.monotonic() - self._told > PROGRESS_SECONDS:
            self._told = time.monotonic()
            line = f"{len(self._hashes)} files, {self.read / 1e6:,.0f} MB read; now {name}"
            print(printable(line), file=sys.stderr, flush=True)


def _remedy(path: Path) -> str:
    """Say what to do in a folder that has no study.yaml."""
    if (path / MANIFEST).is_file():
        return "unpack again"
    if (path / "initial").is_dir():  # as after one cell, which needs no study.yaml
        name = path.resolve().name
        return f"`{targets.make(path, name, 'study.yaml')}` makes it"
    return "give the results folder of a study that has been started, or that of an unpacked pack"


def _manifest(path: Path) -> dict[str, Any]:
    manifest = read_json(path)
    if wrong := wrong_shape(path.name, manifest):
        raise UserError(f"{path}: is damaged: {wrong}; unpack the archive again")
    return dict(manifest)
