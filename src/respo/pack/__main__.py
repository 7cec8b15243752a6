"""`python -m respo.pack results/STUDY --out STUDY.tar.gz`: the results of a study as one file.

In it: tables and figures; cells and scores, with the answer that was read from each response;
metrics, branches, `train.json` and the configuration of every run; the rows, which are prompts and
answers; the study's configuration and the papers' numbers; and MANIFEST.json, which lists hash and
size of each file, versions and code revision. Not in it: weights, logs, report.html, and without
--generations the responses and explore.html, the page that shows some of them. The same folder
gives the same bytes.

The folder is checked first (`respo.check`): one that is damaged or incomplete is not packed, and
neither are files that name folders of this machine. With --follow-links what lies elsewhere, with a
link in its place, is copied into the pack; without it such a folder is refused.

    tar xf STUDY.tar.gz
    python -m respo.check STUDY
    python -m respo.reporting.table respo/table1 --study STUDY --reference STUDY/reference
    python -m respo.reporting.figure respo/fig3 --study STUDY
    python -m respo.reporting.page --study STUDY

The last makes the page, of a pack without responses one that shows none.
"""

import argparse
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from respo.check.expected import is_left_out
from respo.check.folder import Folder
from respo.check.whole import check_folder
from respo.cli import UserError, command
from respo.environment import environment
from respo.files import SEAL, seal
from respo.pack.archive import write_archive
from respo.pack.contents import check_private, chosen, content
from respo.provenance.inside import MANIFEST

PACKAGES = ("numpy", "pyarrow", "matplotlib")


@command
def main() -> None:
    """Parse the command line, check and pack."""
    parser = argparse.ArgumentParser(
        prog="python -m respo.pack",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path, help="such as results/tiny")
    parser.add_argument("--out", type=Path, required=True, help="file to write, .tar.gz")
    parser.add_argument(
        "--generations",
        action="store_true",
        help="pack the responses too, and explore.html, which shows some of them",
    )
    parser.add_argument(
        "--partial", action="store_true", help="pack what is there of a study that is not done"
    )
    parser.add_argument(
        "--with-paths", action="store_true", help="pack files that name folders of this machine"
    )
    parser.add_argument(
        "--follow-links", action="store_true", help="pack what links lead to, out of the folder"
    )
    options = parser.parse_args()
    if not options.out.name.endswith(".tar.gz"):
        parser.error(f"argument --out: {options.out}: the name must end in .tar.gz")
    folder = Folder(options.folder)
    check_folder(folder, skip_weights=True)
    left_out = ["checkpoints", "report"]
    left_out += [] if options.generations else ["generations", "page"]
    _refuse(folder, left_out, options.partial)
    files = dict(chosen(folder, left_out))
    if not options.follow_links:
        _refuse_links(folder, files)
    if not options.with_paths:
        for name, path in files.items():
            check_private(name, path)
    manifest = make_manifest(folder, files, left_out)
    text = (json.dumps(manifest, indent=2) + "\n").encode()

    def entries() -> Iterator[tuple[str, Path | bytes]]:
        yield MANIFEST, text
        for name, path in files.items():
            folder.tell(name)
            yield name, content(name, path) or path

    write_archive(options.out, folder.study.name, entries())
    size = options.out.stat().st_size / 1e6
    print(f"{options.out}: {len(files)} files, {size:,.1f} MB")
    if not options.generations:
        print("without responses, and so without explore.html; --generations packs both")


def _refuse(folder: Folder, left_out: list[str], partial: bool) -> None:
    """End if something is damaged, or, of a whole pack, missing."""
    damaged = folder.found.of("damaged")
    missing = [f for f in folder.found.of("missing") if not is_left_out(f.name, left_out)]
    if wrong := damaged + ([] if partial else missing):
        first = f"{folder.path / wrong[0].name} is {wrong[0].kind}"
        hint = "" if damaged else ", or pack with --partial"
        raise UserError(
            f"{folder.path}: {first}, one of {len(wrong)}; `python -m respo.check {folder.path}` "
            f"names them and the remedies{hint}"
        )


def _refuse_links(folder: Folder, files: Iterable[str]) -> None:
    """End if a file lies elsewhere: a link in a folder that came from others may lead anywhere."""
    for link in folder.followed:
        if any(name == link or name.startswith(f"{link}/") for name in files):
            path = folder.path / link
            raise UserError(
                f"{path}: is a link to {os.path.realpath(path)}; pack with --follow-links if "
                "others may read what lies there"
            )


def make_manifest(folder: Folder, files: dict[str, Path], left_out: list[str]) -> dict[str, Any]:
    """Return what MANIFEST.json says.

    Args:
        folder: that is packed.
        files: path by name.
        left_out: kinds of files that a pack comes without.
    """
    listed = {}
    for name, path in files.items():
        data = content(name, path)
        listed[name] = {
            "sha256": hashlib.sha256(data).hexdigest() if data else folder.other(path),
            "bytes": len(data) if data else path.stat().st_size,
        }
    manifest = {
        "study": folder.study.name,
        "title": folder.study.study.title,
        "environment": environment(*PACKAGES),
        "left_out": left_out,
        "files": listed,
    }
    return manifest | {SEAL: seal(manifest)}


if __name__ == "__main__":
    main()
