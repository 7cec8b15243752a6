"""Data sets and models of the Hugging Face hub: downloaded once, kept in the cache of its library.

A pinned commit that is in the cache needs no network. A branch or tag is resolved at each download,
and offline it is what it was at the last one. Nothing of a repository is ever executed. The token
of `HF_TOKEN` or `hf auth login`, if there is one, is read by huggingface_hub alone and appears in
no message.
"""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, NoReturn

from respo.cli import UserError

MODEL_FILES = ("*.safetensors", "*.json", "*.txt", "*.model", "*.jinja")


class Download(NamedTuple):
    """Files of a data set in the cache, and the commit they are of."""

    paths: list[Path]
    commit: str


def fetch(repository: str, revision: str, files: Sequence[str]) -> Download:
    """Return files of a data set, downloaded unless they are there.

    Args:
        repository: `owner/name`.
        revision: commit, tag or branch.
        files: one or more paths inside the repository.

    Raises:
        UserError: there is no such thing, or neither network nor an earlier download.
    """
    paths = []
    for file in files:
        paths.append(_fetch(repository, revision, file))
        # The cache lays files out as snapshots/COMMIT/FILE. The others are of the same commit, also
        # if a branch moves meanwhile.
        revision = paths[-1].parents[file.count("/")].name
    return Download(paths, revision)


def fetch_model(repository: str, revision: str) -> Path:
    """Return the folder of a model in the cache, downloaded unless it is there; a commit names it.

    Weights as safetensors, configuration, tokenizer and chat template; nothing that is pickled or
    executed.

    Raises:
        UserError: as `fetch`.
    """
    from huggingface_hub import snapshot_download

    try:
        return Path(
            snapshot_download(repository, revision=revision, allow_patterns=list(MODEL_FILES))
        )
    except Exception as error:
        _explain(error, repository, revision, "the model")


def _fetch(repository: str, revision: str, file: str) -> Path:
    # Imported here: it takes a while, and generated data needs none of it.
    from huggingface_hub import hf_hub_download

    try:
        return Path(hf_hub_download(repository, file, repo_type="dataset", revision=revision))
    except Exception as error:
        _explain(error, repository, revision, file)


def _explain(error: Exception, repository: str, revision: str, file: str) -> NoReturn:
    """Raise a message for an error of huggingface_hub, whose own texts hold addresses and hints."""
    from httpx import ConnectError, ConnectTimeout, HTTPError
    from huggingface_hub import errors

    where = f"{repository} on the hub"
    match error:
        case errors.GatedRepoError():
            raise UserError(
                f"{where}: needs your consent; give it on the page of the repository, then set "
                f"HF_TOKEN or log in with `hf auth login`"
            ) from None
        case errors.RepositoryNotFoundError():
            raise UserError(
                f"{where}: no such repository, or a private one; change hub, or set HF_TOKEN"
            ) from None
        case errors.HFValidationError():
            raise UserError(f"{where}: not a name that the hub allows; change hub") from None
        case errors.RevisionNotFoundError():
            raise UserError(f"{where}: no revision {revision!r}; change revision") from None
        case errors.LocalEntryNotFoundError() | errors.OfflineModeIsEnabled():
            raise UserError(_out_of_reach(where, revision, file)) from None
        case errors.EntryNotFoundError():
            raise UserError(
                f"{where}: no file {file!r} at {revision}; change files"
                + _listing(repository, revision)
            ) from None
        case errors.HfHubHTTPError():
            raise UserError(
                f"{where}: {file} at {revision}: HTTP status {error.response.status_code}; try "
                f"again later"
            ) from None
        case ConnectError() | ConnectTimeout():
            raise UserError(_out_of_reach(where, revision, file)) from None
        case HTTPError() | errors.FileMetadataError():
            raise UserError(
                f"{where}: {file} at {revision}: {type(error).__name__}; try again later"
            ) from None
    raise error


def _out_of_reach(where: str, revision: str, file: str) -> str:
    return (
        f"{where}: {file} at {revision} is not in the cache, and the hub is out of reach; run "
        f"`python -m respo.data.prefetch` where there is a network, and share its folder by "
        f"hub_cache or HF_HUB_CACHE"
    )


def _listing(repository: str, revision: str) -> str:
    from huggingface_hub import HfApi

    with suppress(Exception):  # only a help
        files = HfApi().list_repo_files(repository, repo_type="dataset", revision=revision)
        data = [file for file in files if file.endswith((".parquet", ".jsonl", ".json", ".csv"))]
        return f"; there are {', '.join(data[:20])}"
    return ""
