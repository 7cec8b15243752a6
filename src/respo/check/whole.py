"""The whole check of a results folder, step by step."""

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

from respo.check import expected
from respo.check.chain import check_chain
from respo.check.content import check_content
from respo.check.findings import without
from respo.check.folder import Folder
from respo.check.packed import check_manifest
from respo.check.recompute import check_cells, check_products
from respo.cli import UserError, explain
from respo.provenance.inside import links_out

FEW = 5  # links of which each is told where it leads


class Counts(NamedTuple):
    """What was compared: files read, cells summed up again, tables made again."""

    files: int
    cells: int
    tables: int


def check_folder(folder: Folder, skip_weights: bool = False) -> Counts:
    """Check everything; what is wrong stands in `folder.found`.

    Args:
        folder: a results folder or an unpacked pack.
        skip_weights: read of weights the headers only.
    """
    names = sorted(_files(folder.path))
    wanted = {e.name: e for e in expected.files(folder.study, folder.papers)}
    of_weights = {e.name: e for e in expected.weights(folder.study)}
    below = tuple(f"{name}/" for name in (*of_weights, "reference"))
    read = {name for name in names if name.startswith(below)}
    read |= {name for weights in of_weights for name in _of_weights(folder, weights)}
    for name in sorted(read.union(wanted, folder.manifest.get("files", ()))):
        if wrong := folder.wrong(name):
            folder.found.damaged(name, wrong, wanted[name].target if name in wanted else None)
            folder.irregular = True
    _links(folder, {*read, *wanted, *of_weights})
    check_manifest(folder, names)
    for name in sorted(wanted):
        if folder.has(name):
            _content(folder, name, wanted[name].target)
    _missing(folder, [*wanted.values(), *of_weights.values()])
    _foreign(folder, names, {*wanted, *of_weights}, tuple(f"{name}/" for name in of_weights))
    check_chain(folder, skip_weights)
    cells, tables = check_cells(folder), check_products(folder)
    return Counts(len(names), cells, tables)


def _files(folder: Path, below: str = "") -> Iterator[str]:
    """Yield the files of a folder; links to folders, of published weights, are not followed."""
    for path in folder.iterdir():
        name = f"{below}{path.name}"
        if path.is_dir() and not path.is_symlink():
            yield from _files(path, f"{name}/")
        elif not path.is_dir():
            yield name


def _of_weights(folder: Folder, weights: str) -> Iterator[str]:
    """Yield the files of a folder of weights, also where it or one above it is a link."""
    path = folder.path / weights
    if path.is_dir() and not folder.leads_out(weights):
        yield from (f"{weights}/{file.name}" for file in path.iterdir() if not file.is_dir())


def _links(folder: Folder, names: Collection[str]) -> None:
    """Name the links, of files or of folders above them, that lead to another place."""
    if not folder.follow:
        return
    for link in links_out(folder.path):
        name = link.relative_to(folder.path).as_posix()
        is_used = name in names or any(one.startswith(f"{name}/") for one in names)
        if is_used and link.exists() and name not in folder.found.bad:
            folder.followed.append(name)
    for name in folder.followed:
        text = f"is a link to {os.path.realpath(folder.path / name)}, followed"
        if len(folder.followed) > FEW:
            text = "is a link out of the folder, followed"
        folder.found.link(name, text)


def _content(folder: Folder, name: str, target: str) -> None:
    path = folder.path / name
    try:
        check_content(path)
    except UserError as error:
        folder.found.damaged(name, without(path, str(error)), target)
    except OSError as error:
        folder.found.damaged(name, without(path, explain(error)), None)
    folder.tell(name)


def _missing(folder: Folder, wanted: list[expected.Expected]) -> None:
    for name, target, needs in wanted:
        if (folder.path / name).exists() or expected.is_left_out(name, folder.left_out):
            continue
        if needs in (None, name) or (folder.path / str(needs)).exists():
            folder.found.missing(name, target)


def _foreign(folder: Folder, names: list[str], wanted: set[str], weights: tuple[str, ...]) -> None:
    for name in names:
        if (
            name in wanted
            or name in folder.found.bad
            or name.startswith(weights)
            or expected.BESIDE.fullmatch(name)
        ):
            continue
        if expected.LEFT_OVER.fullmatch(name):
            text = "was left by a writer that was killed; delete it if nothing runs"
        else:
            text = "belongs to nothing that study.yaml names"
        folder.found.foreign(name, text)
