"""Methods read for their pictures, outside of any study."""

import difflib
import hashlib
import json
from pathlib import Path

from respo.cli import UserError
from respo.config.load import validate
from respo.config.schema import Method
from respo.config.yaml import read_yaml

FOLDER = Path(__file__).parents[3] / "config" / "methods"


def read_method(path: Path) -> Method:
    """Read a method with the parameters that its file leaves out.

    Raises:
        UserError: no such file, or a bad one.
    """
    # Imported here: torch takes seconds to load.
    from respo.objectives import check_parameters

    method = validate(Method, read_yaml(path), path)
    try:
        parameters = check_parameters(method.objective, method.parameters)
    except ValueError as error:
        raise UserError(f"{path}: {error}") from None
    return method.model_copy(update={"parameters": parameters})


def read_methods(names: str) -> dict[str, Method]:
    """Read methods by name or by path, separated by commas.

    Args:
        names: such as `grpo,aspo,my/method.yaml`.

    Raises:
        UserError: an unknown name, one that stands twice, or a bad file.
    """
    methods: dict[str, Method] = {}
    for name in filter(None, (part.strip() for part in names.split(","))):
        path = Path(name) if name.endswith(".yaml") else FOLDER / f"{name}.yaml"
        if path.stem in methods:
            raise UserError(f"--methods: {path.stem!r} stands twice; name each once")
        if not path.is_file():
            raise UserError(f"--methods: {name!r} is neither a file nor {_known(name)}")
        methods[path.stem] = read_method(path)
    if not methods:
        raise UserError(f"--methods: names no method; write {_known('')}, separated by commas")
    return methods


def _known(name: str) -> str:
    known = sorted(path.stem for path in FOLDER.glob("*.yaml"))
    near = difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"one of {', '.join(known)}{hint}"


def digest(methods: dict[str, Method]) -> str:
    """Return 12 hex digits over the formulas and parameters of methods."""
    from respo.objectives import code_hash

    made_from = {
        name: [method.label, code_hash(method.objective), method.parameters]
        for name, method in methods.items()
    }
    return hashlib.sha256(json.dumps(made_from).encode()).hexdigest()[:12]
