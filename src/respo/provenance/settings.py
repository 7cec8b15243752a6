"""The configuration of a run: what differs from the defaults, and what the study's files chose."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from respo.cli import UserError
from respo.config import ResolvedStudy, Run, load_run_config
from respo.config.schema import RunConfig, Training
from respo.provenance.inside import is_file

Entry = dict[str, Any]


def settings(path: Path, study: ResolvedStudy, run: Run) -> dict[str, Any]:
    """Return the settings of a run.

    Args:
        path: its `config.yaml`.
        study: as its results folder has it.
        run: one of its runs, or one that it no longer has.

    Returns:
        `entries`: of each setting `key`, `value`, `default` if it has one, and where training has
        another value than the study's, that (`study`) and the file that goes before it (`from`);
        `objective`: its name and parameters, `differs`, those of them that are not the formula's
        defaults, and the hash of the formula's code, then and now.

    Raises:
        UserError: the file is missing, no regular file, or of another version of the project.
    """
    is_file(path)
    config = load_run_config(path)
    beside = _beside_study(config, study, run)
    entries = []
    for key, value, default in _leaves(config):
        if key.startswith("objective") or (value is None and default is None):
            continue
        # A default of None: one of several keys that must be given.
        known = {} if default is ... or default is None else {"default": default}
        entries.append({"key": key, "value": value, **known, **beside.get(key, {})})
    return {"entries": entries, "objective": _objective(config)}


def _leaves(model: BaseModel, prefix: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield key, value and default of each setting; the default is `...` where there is none."""
    values = model.model_dump(mode="json")
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from _leaves(value, f"{prefix}{name}.")
        elif field.is_required():
            yield f"{prefix}{name}", values[name], ...
        else:
            default = field.get_default(call_default_factory=True)
            yield f"{prefix}{name}", values[name], default


def _beside_study(config: RunConfig, study: ResolvedStudy, run: Run) -> dict[str, Entry]:
    """Return by key the settings of training in which a run is not like its study."""
    common = Training(**{key: getattr(study.study, key) for key in Training.model_fields})
    of_study = {key: value for key, value, _ in _leaves(common, "training.")}
    return {
        key: {"study": of_study[key], "from": _level(study, run, key.split(".")[1])}
        for key, value, _ in _leaves(config.training, "training.")
        if value != of_study[key]
    }


def _level(study: ResolvedStudy, run: Run, key: str) -> str:
    """Name the file that a setting comes from in place of the study's."""
    for kind, name in study.levels(run):
        level = getattr(study, kind).get(name)
        if getattr(level, key, None) is not None:
            return f"{kind}/{name}.yaml"
    return f"studies/{study.name}.yaml: extra_runs"


def _objective(config: RunConfig) -> dict[str, Any]:
    name, parameters = config.objective.objective, config.objective.parameters
    told = {"name": name, "parameters": parameters, "code": config.objective_code}
    # Imported here: torch takes seconds to load.
    from respo import objectives

    try:
        defaults = objectives.check_parameters(name, {})
    except ValueError:  # of the user's own folder, or gone
        return {**told, "code_now": None, "differs": []}
    differs = [
        {"key": key, "value": value, "default": defaults.get(key)}
        for key, value in parameters.items()
        if value != defaults.get(key)
    ]
    return {**told, "code_now": objectives.code_hash(name), "differs": differs}


def settings_or_reason(path: Path, study: ResolvedStudy, run: Run) -> dict[str, Any]:
    """Return the settings, or under `unreadable` why they cannot be told."""
    try:
        return settings(path, study, run)
    except UserError as error:
        return {"unreadable": str(error)}
