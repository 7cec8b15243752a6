"""The configuration of a run: what differs from the defaults, and what the study's files chose."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from respo.cli import UserError
from respo.config import ResolvedStudy, Run, load_run_config
from respo.config.schema import RunConfig
from respo.provenance.inside import is_file

Entry = dict[str, Any]
MAIN = (
    "training.updates",
    "training.mini_batch",
    "training.rollouts_per_prompt",
    "staleness",
    "seed",
    "training.optimizer.learning_rate",
    "training.optimizer.warmup_updates",
    "training.temperature",
    "training.loss_aggregation",
    "training.reward",
    "model.max_prompt_tokens",
    "model.max_response_tokens",
)


def settings(path: Path, study: ResolvedStudy, run: Run) -> dict[str, Any]:
    """Return the settings of a run.

    Args:
        path: its `config.yaml`.
        study: as its results folder has it.
        run: one of its runs, or one that it no longer has.

    Returns:
        `main`: by name the few settings by which runs are known; `differs`: key, value and default
        where they are not the same; `chosen`: keys that have no default, with their values;
        `beside_study`: settings of training that are not the study's,
        with the value of the study and the file that goes before it; `objective`: its name and
        parameters, those that differ from the formula's defaults, and the hash of the formula's
        code, then and now.

    Raises:
        UserError: the file is missing, no regular file, or of another version of the project.
    """
    is_file(path)
    config = load_run_config(path)
    differs, chosen, main = [], {}, {}
    for key, value, default in _leaves(config):
        if key.startswith("objective"):
            continue
        if key in MAIN:
            main[key.rpartition(".")[2]] = value
        if default is ... or default is None:  # one of several keys that must be given
            if value is not None or default is ...:
                chosen[key] = value
        elif value != default:
            differs.append({"key": key, "value": value, "default": default})
    return {
        "main": main,
        "differs": differs,
        "chosen": chosen,
        "beside_study": _beside_study(config, study, run),
        "objective": _objective(config),
    }


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


def _beside_study(config: RunConfig, study: ResolvedStudy, run: Run) -> list[Entry]:
    trained, common = config.training, study.study
    found = []
    for key in type(trained).model_fields:
        value, of_study = getattr(trained, key), getattr(common, key, None)
        if value != of_study:
            found.append(
                {
                    "key": f"training.{key}",
                    "value": _plain(value),
                    "study": _plain(of_study),
                    "from": _level(study, run, key),
                }
            )
    return found


def _level(study: ResolvedStudy, run: Run, key: str) -> str:
    """Name the file that a setting comes from in place of the study's."""
    for kind, name in study.levels(run):
        level = getattr(study, kind).get(name)
        if getattr(level, key, None) is not None:
            return f"{kind}/{name}.yaml"
    return f"studies/{study.name}.yaml: extra_runs"


def _plain(value: Any) -> Any:
    return value.model_dump(mode="json") if isinstance(value, BaseModel) else value


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
