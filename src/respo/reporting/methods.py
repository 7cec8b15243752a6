"""Methods read for their pictures, outside of any study."""

import hashlib
import json
from pathlib import Path

from respo.cli import UserError
from respo.config import load_methods, method_files
from respo.config.schema import Method

CONFIG = Path(__file__).parents[3] / "config"


def all_methods() -> dict[str, Method]:
    """Read every method of config/methods, sorted by name."""
    return load_methods(CONFIG, dict.fromkeys(method_files(CONFIG), ""))


def read_methods(names: str, own_methods: Path | None = None) -> dict[str, Method]:
    """Read methods by name.

    Args:
        names: such as `grpo,aspo`.
        own_methods: a folder of further methods.

    Raises:
        UserError: an unknown name, one that stands twice, none at all, or a bad file.
    """
    chosen = [part.strip() for part in names.split(",") if part.strip()]
    twice = [name for i, name in enumerate(chosen) if name in chosen[:i]]
    if twice:
        raise UserError(f"--methods: {twice[0]!r} stands twice; name each once")
    if not chosen:
        known = ", ".join(method_files(CONFIG, own_methods))
        raise UserError(f"--methods: names no method; write some of {known}, with commas between")
    return load_methods(CONFIG, dict.fromkeys(chosen, "--methods"), own_methods)


def digest(methods: dict[str, Method]) -> str:
    """Return 12 hex digits over the formulas and parameters of methods."""
    # Imported here: torch takes seconds to load.
    from respo.objectives import code_hash

    made_from = {
        name: [method.label, code_hash(method.objective), method.parameters]
        for name, method in methods.items()
    }
    return hashlib.sha256(json.dumps(made_from).encode()).hexdigest()[:12]
