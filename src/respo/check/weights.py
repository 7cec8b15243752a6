"""Are weights those that their record names, and the files beside them those of their list?"""

import shlex
from collections.abc import Iterable

from respo.check import expected
from respo.check.content import check_content
from respo.check.findings import without
from respo.check.folder import Folder
from respo.cli import UserError
from respo.weight_files import INDEX, SUMS, policy_hash, read_sums, weight_files

CHANGED = f"was changed or damaged: its hash is not that in {SUMS}"


def check_weights(folder: Folder, name: str, sha256: object, target: str, skip: bool) -> None:
    """Check a folder in Hugging Face's format that a record has the hash of.

    Args:
        folder: where the findings go, too.
        name: of the folder of weights.
        sha256: of the weights, as the record has it.
        target: the record, which is made with the weights.
        skip: read of weights the headers only.
    """
    path = folder.path / name
    if not path.exists() or "checkpoints" in folder.left_out:
        return
    if not path.is_dir():
        folder.found.damaged(name, "is no folder", target)
        return
    if folder.leads_out(name):
        folder.found.damaged(name, "leads out of the folder, by a link", target)
        return
    there = {file.name for file in path.iterdir()} - {SUMS}
    if any(f"{name}/{file}" in folder.found.bad for file in (*there, SUMS)):
        return
    try:
        heavy = {file.name for file in weight_files(path)}
    except UserError as error:
        folder.found.damaged(f"{name}/{INDEX}", without(path / INDEX, str(error)), target)
        return
    for file in sorted(heavy & there):
        _header(folder, f"{name}/{file}", target)
    whole = all(folder.is_file(f"{name}/{file}") for file in heavy)
    true = not skip and whole and _policy(folder, name) == sha256
    bad_list = _compare_list(folder, name, target, there, heavy if skip else set(), true)
    if bad_list and true:
        bad_list += f". The weights are those of {target}: {_anew(folder, name, there)}"
    if bad_list:
        folder.found.damaged(f"{name}/{SUMS}", bad_list, None if true else target)
    for file in sorted(heavy - there):
        folder.found.missing(f"{name}/{file}", target)
    if all(folder.has(f"{name}/{file}") for file in heavy) and not skip and not true:
        text = f"is not the weights that {target} names"
        folder.found.damaged(f"{name}/{min(heavy)}", text, target)


def _policy(folder: Folder, name: str) -> str:
    return policy_hash(folder.path / name, lambda file: folder.sha256(f"{name}/{file.name}"))


def _anew(folder: Folder, name: str, there: Iterable[str]) -> str:
    """Say how a list is written anew, which needs no training."""
    files = " ".join(shlex.quote(file) for file in sorted(there))
    where = shlex.quote(str(folder.path / name))
    return f"(cd {where} && sha256sum {files} > {SUMS}) writes the list anew"


def _header(folder: Folder, name: str, target: str) -> None:
    """Compare the length of weights with what their header tells."""
    path = folder.path / name
    if path.suffix == ".safetensors":
        try:
            check_content(path)
        except UserError as error:
            folder.found.damaged(name, without(path, str(error)), target)


def _compare_list(
    folder: Folder, name: str, target: str, there: set[str], unread: set[str], true: bool
) -> str:
    """Compare the files with the list; return what is wrong with the list, empty if nothing is."""
    path = folder.path / name
    try:
        sums = read_sums(path)
    except UserError as error:
        return without(path / SUMS, str(error))
    if not sums:
        folder.found.note(name, f"has no {SUMS}: of its files only the weights were compared")
        return ""
    if unlisted := there - sums.keys():
        return f"does not list {min(unlisted)}"
    wrong = ""
    for file, sha256 in sorted(sums.items()):
        if file not in there:
            folder.found.missing(f"{name}/{file}", target)
        elif file not in unread and folder.has(f"{name}/{file}"):
            found = folder.sha256(f"{name}/{file}")
            if found == sha256:
                continue
            others = _listed_elsewhere(folder, name, file)
            if true and (file.endswith(".safetensors") or found in others):
                wrong = f"is damaged: its hash of {file} is not that of the file, which is good"
            elif sha256 in others:
                text = f"{CHANGED}; copy it from {folder.path / others[sha256]}"
                folder.found.damaged(f"{name}/{file}", text, None)
            else:
                text = f"{CHANGED}, unless that list itself is damaged"
                folder.found.damaged(f"{name}/{file}", text, target)
    return wrong


def _listed_elsewhere(folder: Folder, name: str, file: str) -> dict[str, str]:
    """Return the file of other weights, as their lists have it, by hash."""
    found: dict[str, str] = {}
    if file.endswith(".safetensors"):
        return found
    for other, _, _ in expected.weights(folder.study):
        if other == name or not folder.is_file(f"{other}/{SUMS}"):
            continue
        try:
            sums = read_sums(folder.path / other)
        except UserError:
            continue
        there = file in sums and folder.has(f"{other}/{file}")
        if there and folder.sha256(f"{other}/{file}") == sums[file]:
            found[sums[file]] = f"{other}/{file}"
    return found
