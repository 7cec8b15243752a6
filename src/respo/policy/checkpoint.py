"""A policy as a folder in Hugging Face format."""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from respo.cli import UserError
from respo.files import read_json
from respo.policy.tokenizer import load_tokenizer
from respo.policy.weights import Policy, expected_shapes
from respo.weight_files import SUMS, WEIGHTS, sums_text, weight_files

EXPERT = re.compile(r"(.*\.mlp\.experts)\.(\d+)\.(gate|up|down)_proj\.weight")
# What `network` takes for granted; a checkpoint that says otherwise is not read wrongly.
ASSUMED: dict[str, Any] = {
    "attention_bias": False,
    "hidden_act": "silu",
    "use_sliding_window": False,
    "decoder_sparse_step": 1,
    "mlp_only_layers": [],
}


def save_policy(policy: Policy, folder: Path) -> None:
    """Write the folder; it appears whole or not at all, and replaces an older one.

    Raises:
        OSError: it cannot be written; ``filename`` is the folder.
    """
    weights = safetensors.torch.save(split_experts(policy.weights), {"format": "pt"})
    files = text_files(policy) | {WEIGHTS: weights}
    # Of what is to be written, not of what the disk makes of it.
    sums = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    with atomic_folder(folder) as temporary:
        for name, content in (files | {SUMS: sums_text(sums).encode()}).items():
            (temporary / name).write_bytes(content)


def text_files(policy: Policy) -> dict[str, bytes]:
    """Name and content of every file that `save_policy` writes, but the weights.

    Training does not change them.
    """
    generation = {
        "eos_token_id": policy.tokenizer.eos_id,
        "pad_token_id": policy.tokenizer.pad_id,
    }
    return {
        "config.json": _json(policy.config),
        "generation_config.json": _json(generation),
        "tokenizer.json": policy.tokenizer.backend.to_str(pretty=True).encode(),
        "tokenizer_config.json": _json(policy.tokenizer.config),
    }


def load_policy(folder: Path, device: str | torch.device = "cpu") -> Policy:
    """Read a folder written by `save_policy` or by transformers, as float32.

    The weights do not require gradients.

    Raises:
        UserError: the folder is missing, incomplete or damaged, or of another kind of model.
    """
    config = _read_config(folder / "config.json")
    loaded: dict[str, Tensor] = {}
    for path in weight_files(folder):
        try:
            loaded |= safetensors.torch.load_file(path)
        except FileNotFoundError:
            raise UserError(f"{path}: no such file") from None
        except (SafetensorError, OSError) as error:
            raise UserError(
                f"{path}: damaged or cut short ({error}). Delete {folder} and make it anew."
            ) from None
    if config["tie_word_embeddings"]:
        loaded.pop("lm_head.weight", None)
    try:
        weights = fuse_experts(loaded)
    except RuntimeError as error:  # experts of different shapes
        raise UserError(f"{folder}: experts do not fit together ({error})") from None
    _check_weights(folder, weights, expected_shapes(config))
    weights = {name: w.to(device=device, dtype=torch.float32) for name, w in weights.items()}
    return Policy(config, weights, load_tokenizer(folder))


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """Give a temporary sibling to fill with files; flush it and rename it to ``folder``.

    An older folder is moved aside first and deleted last: whatever stands under the name is whole.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".part", dir=folder.parent))
    try:
        new, old = temporary / "new", temporary / "old"
        new.mkdir()
        yield new
        for path in new.iterdir():
            with path.open("rb") as file:
                os.fsync(file.fileno())
        if folder.exists():
            folder.rename(old)
        new.rename(folder)
    except OSError as error:
        # Say the folder that the user knows, not the temporary one.
        error.filename = str(folder)
        raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def split_experts(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """One tensor per expert and projection, as files hold them."""
    split: dict[str, Tensor] = {}
    for name, weight in weights.items():
        layer, _, projection = name.rpartition(".")
        if projection not in ("gate_up_proj", "down_proj"):
            split[name] = weight.detach().cpu().contiguous()
            continue
        for i, expert in enumerate(weight.detach().cpu()):
            parts = {"gate": 0, "up": 1} if projection == "gate_up_proj" else {"down": 0}
            for (part, _), half in zip(parts.items(), expert.chunk(len(parts)), strict=True):
                # A copy each: tensors that share memory are refused by safetensors.
                split[f"{layer}.{i}.{part}_proj.weight"] = half.clone()
    return split


def fuse_experts(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Undo `split_experts`; other tensors stay as they are, fused ones too.

    Raises:
        RuntimeError: the shapes of the experts differ.
    """
    fused: dict[str, Tensor] = {}
    experts: dict[str, dict[str, dict[int, Tensor]]] = {}
    for name, weight in weights.items():
        if match := EXPERT.fullmatch(name):
            layer, number, part = match.groups()
            experts.setdefault(layer, {}).setdefault(part, {})[int(number)] = weight
        else:
            fused[name] = weight
    for layer, parts in experts.items():
        stacked = {
            part: torch.stack([w for _, w in sorted(p.items())]) for part, p in parts.items()
        }
        if "down" in stacked:
            fused[f"{layer}.down_proj"] = stacked["down"]
        if "gate" in stacked and "up" in stacked:
            fused[f"{layer}.gate_up_proj"] = torch.cat([stacked["gate"], stacked["up"]], 1)
    return fused


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()


def _read_config(path: Path) -> dict[str, Any]:
    config = read_json(path)
    kind = config.get("model_type") if isinstance(config, dict) else None
    if kind not in ("qwen3", "qwen3_moe"):
        raise UserError(f"{path}: model_type is {kind!r}; qwen3 and qwen3_moe are supported")
    for key, value in ASSUMED.items():
        if config.get(key, value) != value:
            raise UserError(f"{path}: {key} is {config[key]!r}; only {value!r} is supported")
    rope = config.get("rope_parameters") or {}
    if rope.get("rope_type", "default") != "default" or config.get("rope_scaling"):
        raise UserError(f"{path}: only the default rotary embedding is supported")
    try:
        expected_shapes(config)
        (rope or config)["rope_theta"], config["rms_norm_eps"], config["tie_word_embeddings"]
    except KeyError as error:
        raise UserError(f"{path}: key {error} is missing") from None
    # Written back as it is held, whatever the file's precision was.
    config.pop("torch_dtype", None)
    return config | {"dtype": "float32"}


def _check_weights(
    folder: Path, weights: dict[str, Tensor], expected: dict[str, tuple[int, ...]]
) -> None:
    if odd := sorted(weights.keys() ^ expected.keys()):
        what = "missing from" if odd[0] in expected else "not expected in"
        raise UserError(f"{folder}: tensor {odd[0]} is {what} the weights; make the folder anew")
    for name, shape in expected.items():
        if tuple(weights[name].shape) != shape:
            raise UserError(
                f"{folder}: tensor {name} is {list(weights[name].shape)}, "
                f"but config.json means {list(shape)}; make the folder anew"
            )
        if not weights[name].isfinite().all():
            raise UserError(f"{folder}: tensor {name} is not finite; the training had diverged")
