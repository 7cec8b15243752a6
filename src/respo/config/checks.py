"""What the files of a study must have in common, beyond what each of them says by itself."""

from pathlib import Path
from typing import Any

from respo.cli import UserError
from respo.config.schema import (
    Chain,
    Study,
    Training,
    VerlModel,
    VllmModel,
    impossible_options,
    repeated,
    verifiers_of,
)
from respo.config.study import BASELINE, RESERVED_COLUMN, RESERVED_FOLDERS, ResolvedStudy

# Keys that have no say where nothing is trained.
OF_TRAINING = (*Training.model_fields, "models", "staleness", "seeds", "train_data")


def check_keys(values: dict[str, Any], path: Path) -> None:
    """Refuse a study with nothing to do, and keys of training in one that trains nothing.

    Args:
        values: the study as its file has it. A key that is none is for others to tell.
        path: the file.
    """
    if values.get("methods") or not values.keys() <= Study.model_fields.keys():
        return
    if not values.get("baselines"):
        raise UserError(
            f"{path}: there is nothing to do: name methods to train, or baselines to evaluate"
        )
    evaluation = values.get("evaluation")
    dead = [key for key in values if key in OF_TRAINING]
    if isinstance(evaluation, dict) and "updates" in evaluation:
        dead.append("evaluation.updates")
    if dead:
        raise UserError(
            f"{path}: belongs to training, and there are no methods: {', '.join(dead)}. Remove it, "
            f"or name methods"
        )


def check_names(resolved: ResolvedStudy, path: Path) -> None:
    """Refuse names that stand for something else in a results folder."""
    for name in resolved.models:
        if name in RESERVED_FOLDERS:
            raise UserError(f"{path}: models: {name!r} is a folder of every study; rename it")
    if RESERVED_COLUMN in resolved.benchmarks:
        raise UserError(f"{path}: benchmarks: {RESERVED_COLUMN!r} is the macro average; rename it")
    if BASELINE in resolved.methods:
        raise UserError(f"{path}: methods: {BASELINE!r} stands for models as they come; rename it")


def check_models(resolved: ResolvedStudy, path: Path) -> None:
    """Refuse runs of models that cannot be trained."""
    for name in resolved.trained_models():
        if isinstance(resolved.models[name], VllmModel):
            raise UserError(
                f"{path}: models: {name!r} has backend vllm, which is evaluated only; name it "
                f"under baselines"
            )


def check_runs(resolved: ResolvedStudy, path: Path) -> None:
    """Refuse runs that stand twice."""
    if twice := repeated(resolved.runs()):
        raise UserError(
            f"{path}: extra_runs: {twice.name} stands twice or is in the grid; keep one"
        )


def check_rewards(resolved: ResolvedStudy, path: Path) -> None:
    """Refuse a reward that cannot judge responses to the prompts of a training set."""
    reward = resolved.study.reward
    for name in dict.fromkeys(resolved.train_data(run) for run in resolved.runs()):
        known = verifiers_of(resolved.datasets[name])
        if reward not in known:
            raise UserError(
                f"{path}: reward: {reward!r} does not fit the training set {name!r} of source "
                f"{resolved.datasets[name].source}; write {' or '.join(known)}, or another "
                f"train_data"
            )


def check_options(resolved: ResolvedStudy, known: dict[str, dict[str, Path]], path: Path) -> None:
    """Refuse options that a model cannot be trained with or that would do nothing."""
    idle: set[Path] = set()
    active: set[Path] = set()
    for run in resolved.runs():
        training = resolved.training(run)
        files = {
            known[kind][name]: getattr(resolved, kind)[name].model_dump()
            for kind, name in resolved.levels(run)
        }
        files[path] = resolved.study.model_dump(exclude_unset=True)

        def source(option: str, files: dict[Path, dict[str, Any]] = files) -> Path:
            return next((f for f, keys in files.items() if keys.get(option) is not None), path)

        model = resolved.models[run.model]
        assert not isinstance(model, VllmModel)  # refused before
        for option, reason in impossible_options(model, training, run.staleness).items():
            raise UserError(f"{source(option)}: {option}: {reason} (model {run.model!r})")
        file = source("overlong_factor")
        if files[file].get("overlong_factor") is not None:
            (active if training.overlong_buffer else idle).add(file)
    for file in sorted(idle - active):
        raise UserError(
            f"{file}: overlong_factor: does nothing, since overlong_buffer is 0 in its runs; "
            f"set overlong_buffer or leave the factor out"
        )


def check_prompts(resolved: ResolvedStudy, path: Path) -> None:
    """Refuse generated prompts that no model could take; shorter ones of a set still train.

    How long the rows of files are is seen when they are read.
    """
    for model_name, model in resolved.local_models().items():
        limit = model.max_prompt_tokens
        lengths = {
            f"benchmarks: {name}": benchmark.prompt_tokens()[1]
            for name, benchmark in resolved.benchmarks.items()
            if isinstance(benchmark, Chain)
        } | {
            f"data {name}": data.prompt_tokens()[0]
            for name, data in resolved.datasets.items()
            if isinstance(data, Chain)
        }
        for what, tokens in lengths.items():
            if tokens > limit:
                raise UserError(
                    f"{path}: {what}: prompts of {tokens} tokens are longer than "
                    f"max_prompt_tokens {limit} of model {model_name!r}; raise it"
                )


def check_weights(resolved: ResolvedStudy, folder: Path) -> None:
    """Refuse models whose weights are to be in a folder of this machine that is not there.

    Args:
        resolved: the study. Loading it does not call this: another machine may have the folder.
        folder: the configuration's.
    """
    for name, model in resolved.models.items():
        place = model.checkpoint.folder if isinstance(model, VerlModel | VllmModel) else None
        if place and not place.is_dir():
            raise UserError(
                f"{folder / 'models' / name}.yaml: checkpoint.path: {place}: no such folder, seen "
                f"from {Path.cwd()}; it must be one in Hugging Face's format"
            )
