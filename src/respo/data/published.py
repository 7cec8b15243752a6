"""`python -m respo.data.published --config FILE --out initial.json`: a published model's weights.

Fetches the checkpoint that FILE names from the Hugging Face hub, unless it is in the cache, or
takes the folder that FILE names; checks it; and writes which weights they are:

weights_sha256   hash of the weights, see `respo.weight_files.policy_hash`
weights          the folder, absolute: a snapshot in the hub's cache, or the folder named
revision         the commit that was found; null for a folder
versions         of what has read them

Beside the file, `weights` becomes a link to the folder.

Only safetensors are taken: loading pickled weights can execute anything. Models that bring code of
their own are refused for the same reason.
"""

import argparse
import hashlib
import os
import re
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from safetensors import SafetensorError, safe_open

from respo.cli import UserError, command
from respo.config import load_published_config
from respo.config.schema import Checkpoint
from respo.data.hub import fetch_model
from respo.environment import environment
from respo.files import read_json, write_record
from respo.weight_files import INDEX, WEIGHTS, policy_hash, weight_files

PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
CHUNK = 16 << 20


def find(checkpoint: Checkpoint) -> tuple[Path, str | None]:
    """Return the folder of a checkpoint, fetched if need be, and its commit if it is of the hub.

    Raises:
        UserError: there is no such thing, or neither network nor an earlier download.
    """
    if checkpoint.hub and checkpoint.revision:
        folder = fetch_model(checkpoint.hub, checkpoint.revision).absolute()
        return folder, folder.name
    folder = (checkpoint.folder or Path()).absolute()
    if not folder.is_dir():
        raise UserError(
            f"{folder}: no such folder; checkpoint.path must name one in Hugging Face's format"
        )
    return folder, None


def check(folder: Path, remedy: str) -> None:
    """Refuse a folder that training or evaluation would fail on, or that would execute code.

    Args:
        folder: the checkpoint.
        remedy: what to change where another checkpoint is needed.

    Raises:
        UserError: it is incomplete or damaged, pickled, or brings code; file and remedy are named.
    """
    for name in ("config.json", "tokenizer_config.json"):
        if not (folder / name).is_file():
            raise UserError(f"{folder / name}: no such file, so this is no checkpoint; {remedy}")
        content = read_json(folder / name)
        if not isinstance(content, dict):
            raise UserError(f"{folder / name}: not a JSON object; {remedy}")
        if content.get("auto_map"):
            raise UserError(
                f"{folder / name}: auto_map: the model brings code of its own, which is never "
                f"executed; {remedy}"
            )
    if not (folder / WEIGHTS).is_file() and not (folder / INDEX).is_file():
        pickled = sorted(path.name for path in folder.iterdir() if path.suffix in PICKLED)
        found = f"only {pickled[0]}, which is pickled and is not read; " if pickled else ""
        raise UserError(
            f"{folder}: holds no safetensors ({WEIGHTS} or {INDEX}); {found}{remedy}, or convert "
            f"the weights with `save_pretrained` of transformers"
        )
    if (folder / WEIGHTS).is_file() and (folder / INDEX).is_file():
        raise UserError(
            f"{folder}: holds both {WEIGHTS} and {INDEX}, and programs differ in which they read; "
            f"delete one, or {remedy}"
        )
    named = {path.name for path in weight_files(folder)}
    if more := sorted({path.name for path in folder.glob("*.safetensors")} - named):
        raise UserError(
            f"{folder / more[0]}: is not one of the model's weights, and vLLM would read it; "
            f"delete it, or {remedy}"
        )
    for path in weight_files(folder):
        try:
            with safe_open(path, "numpy"):
                pass
        except FileNotFoundError:
            raise UserError(
                f"{path}: no such file, but {INDEX} names it; fetch the checkpoint again"
            ) from None
        except (SafetensorError, OSError) as error:
            raise UserError(
                f"{path}: damaged or cut short ({error}); delete it and fetch it again"
            ) from None
    if not has_chat_template(folder):
        raise UserError(
            f"{folder / 'tokenizer_config.json'}: chat_template is missing, and prompts go through "
            f"it; {remedy}, or name a copy of the folder with a chat_template.jinja by "
            f"checkpoint.path"
        )


def has_chat_template(folder: Path) -> bool:
    """Tell whether a checkpoint has a chat template, in one of the three places for it."""
    return (
        bool(read_json(folder / "tokenizer_config.json").get("chat_template"))
        or (folder / "chat_template.jinja").is_file()
        or (folder / "chat_template.json").is_file()
    )


class Hashing:
    """Hashes files, and says every few seconds how far it is.

    A file that lies in the hub's cache under its own SHA-256 must have it.
    """

    def __init__(self, paths: Iterable[Path], interval: float = 5.0) -> None:
        self.total = sum(path.stat().st_size for path in paths)
        self.interval = interval
        self.done = 0
        self.start = self.last = time.monotonic()

    def __call__(self, path: Path) -> str:
        """Return the SHA-256 of a file.

        Raises:
            UserError: it is not the file that was downloaded.
        """
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                digest.update(chunk)
                self._tell(len(chunk))
        stored = path.resolve().name
        if re.fullmatch("[0-9a-f]{64}", stored) and digest.hexdigest() != stored:
            raise UserError(
                f"{path}: damaged: its SHA-256 is {digest.hexdigest()}; delete {path.resolve()} "
                f"and fetch the checkpoint again"
            )
        return digest.hexdigest()

    def _tell(self, size: int) -> None:
        self.done += size
        now = time.monotonic()
        if now - self.last >= self.interval and self.done < self.total:
            self.last = now
            left = (now - self.start) / self.done * (self.total - self.done)
            print(
                f"hashed {self.done / 1e9:.1f} of {self.total / 1e9:.1f} GB, about {left:.0f} s "
                f"left",
                file=sys.stderr,
                flush=True,
            )


@command
def main() -> None:
    """Parse the command line, find, check and hash the weights."""
    parser = argparse.ArgumentParser(
        prog="python -m respo.data.published",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--config", type=Path, required=True, help="YAML: checkpoint")
    parser.add_argument("--out", type=Path, required=True, help="initial.json to write")
    options = parser.parse_args()
    checkpoint = load_published_config(options.config).checkpoint
    folder, commit = find(checkpoint)
    key = "checkpoint.path" if commit is None else "checkpoint.hub or checkpoint.revision"
    check(folder, f"change {key} of the model")
    sha256 = policy_hash(folder, Hashing(weight_files(folder)))
    options.out.parent.mkdir(parents=True, exist_ok=True)
    link(options.out.with_name("weights"), folder)
    write_record(
        options.out,
        {
            "weights_sha256": sha256,
            "weights": str(folder),
            "revision": commit,
            "versions": environment("huggingface_hub", "safetensors"),
        },
    )
    print(f"{options.out}: weights {sha256[:12]} in {folder}")


def link(path: Path, folder: Path) -> None:
    """Make `path` a link to a folder, in place of an older one.

    Raises:
        UserError: a folder is in the way.
    """
    if path.is_dir() and not path.is_symlink():
        raise UserError(
            f"{path}: is a folder with weights of another model of this name; delete it"
        )
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    temporary.symlink_to(folder)
    temporary.replace(path)


if __name__ == "__main__":
    main()
