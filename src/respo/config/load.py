"""From YAML files to validated objects; every problem becomes one message.

A message names the file, the key, the value and what is allowed. All problems of a file are told at
once.
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from respo.cli import UserError
from respo.config.schema import (
    NAME_PATTERN,
    Benchmark,
    Chain,
    Cluster,
    Dataset,
    InitialConfig,
    LocalModel,
    Method,
    Model,
    PublishedConfig,
    Rows,
    RunConfig,
    Settings,
    Strict,
    Study,
    Union,
    VerlModel,
    VllmModel,
    impossible_options,
)
from respo.config.study import BASELINE, RESERVED_COLUMN, RESERVED_FOLDERS, ResolvedStudy
from respo.config.yaml import NUMBER, read_yaml

M = TypeVar("M", bound=Strict)


def load_settings(path: Path, overrides: dict[str, Any]) -> Settings:
    """Validate `config/config.yaml` with the overrides of the command line laid over it."""
    settings = read_yaml(path)
    validate(Settings, settings, path)
    return validate(Settings, {**settings, **overrides}, "--config")


def load_study(
    config: Path,
    name: str,
    own_methods: Path | None = None,
    verl_overrides: Sequence[str] = (),
) -> ResolvedStudy:
    """Read a study and every file that it names.

    Args:
        config: the folder with studies/, methods/, models/, datasets/ and benchmarks/.
        name: a file of ``config/studies`` without ``.yaml``.
        own_methods: a folder of further methods, which all join the study.
        verl_overrides: further options of verl, which join those of the study.

    Raises:
        UserError: with all problems of the first bad file.
    """
    path = _named(_yaml_files(config / "studies"), name, "study", config / "studies")
    study = validate(Study, read_yaml(path), path)
    named = _places(study, "methods", path)
    joining = [n for n in _yaml_files(own_methods) if n not in named] if own_methods else []
    study = study.model_copy(
        update={
            "methods": [*study.methods, *joining],
            "verl_overrides": [*study.verl_overrides, *verl_overrides],
        }
    )
    places = named | dict.fromkeys(joining, str(own_methods))

    def load(kind: Any, folder: str, names: dict[str, str]) -> dict[str, Any]:
        """Read the files that are named, each with the place that names it."""
        known = _yaml_files(config / folder)
        files = {n: _named(known, n, place, config / folder) for n, place in names.items()}
        return {n: validate(kind, read_yaml(file), file) for n, file in files.items()}

    models = load(Model, "models", _places(study, "models", path) | _baselines(study, path))
    data = {
        m.warm_start.data: f"{config / 'models' / name}.yaml: warm_start.data"
        for name, m in models.items()
        if isinstance(m, LocalModel)
    }
    resolved = ResolvedStudy(
        name=name,
        study=study,
        methods=load_methods(config, places, own_methods),
        models=models,
        datasets=load(Dataset, "datasets", data | _train_data(study, path)),
        benchmarks=load(Benchmark, "benchmarks", _places(study, "benchmarks", path)),
    )
    _check_names(resolved, path)
    _check_models(resolved, path)
    _check_runs(resolved, path)
    files = {
        "methods": method_files(config, own_methods),
        "models": _yaml_files(config / "models"),
    }
    _check_options(resolved, files, path)
    _check_prompts(resolved, path)
    for name, place in data.items():
        if not isinstance(resolved.datasets[name], Chain):
            raise UserError(
                f"{place}: {name!r} has source {resolved.datasets[name].source}; demonstrations "
                f"can be written for prompts of source chain only, name such a data set"
            )
    return resolved


def load_methods(
    config: Path, places: dict[str, str], own_methods: Path | None = None
) -> dict[str, Method]:
    """Read methods, with every parameter of their objectives.

    Args:
        config: the folder with methods/.
        places: names of the methods, each with the place that names it.
        own_methods: a folder of further methods; its objectives become known to this process and
            to those that it starts.

    Raises:
        UserError: with all problems of the first bad file.
    """
    known = method_files(config, own_methods)
    files = {n: _named(known, n, place, config / "methods") for n, place in places.items()}
    if own_methods:
        from respo import objectives

        objectives.use_own(own_methods)
    methods = {
        name: _with_all_parameters(validate(Method, read_yaml(file), file), file)
        for name, file in files.items()
    }
    first: dict[str, str] = {}
    for name, method in methods.items():
        if (other := first.setdefault(method.label, name)) != name:
            raise UserError(
                f"{files[name]}: label: {method.label!r} is that of {files[other]}; tables and "
                f"figures could not tell them apart"
            )
    return methods


def _yaml_files(folder: Path) -> dict[str, Path]:
    """Return the YAML files of a folder by name."""
    return {path.stem: path for path in sorted(folder.glob("[!.]*.yaml"))}


def method_files(config: Path, own_methods: Path | None = None) -> dict[str, Path]:
    """Return the files of all methods by name: ours, and those of a user's own folder.

    Raises:
        UserError: the user's folder is missing or empty, or a name is bad or one of ours.
    """
    known = _yaml_files(config / "methods")
    if own_methods is None:
        return known
    if not own_methods.is_dir():
        raise UserError(f"own_methods: {own_methods} is not a folder")
    own = _yaml_files(own_methods)
    if not own:
        raise UserError(f"own_methods: {own_methods} holds no NAME.yaml (.yml is not read)")
    for name in own.keys() & known.keys():
        raise UserError(f"{own[name]}: {known[name]} has this name already; rename yours")
    for name, file in own.items():
        if not re.fullmatch(NAME_PATTERN, name):
            raise UserError(f"{file}: the name of a method is letters, digits, '.', '_' and '-'")
    return known | own


def _places(study: Study, key: str, path: Path) -> dict[str, str]:
    """Return the names under a key of the study and of its extra runs, with file and key."""
    places = dict.fromkeys(getattr(study, key), f"{path}: {key}")
    for index, extra in enumerate(study.extra_runs):
        for name in getattr(extra, key, None) or ():
            places.setdefault(name, f"{path}: extra_runs.{index}.{key}")
    return places


def _baselines(study: Study, path: Path) -> dict[str, str]:
    return dict.fromkeys(study.baselines, f"{path}: baselines")


def _train_data(study: Study, path: Path) -> dict[str, str]:
    places = {study.train_data: f"{path}: train_data"}
    for index, extra in enumerate(study.extra_runs):
        if extra.train_data:
            places.setdefault(extra.train_data, f"{path}: extra_runs.{index}.train_data")
    return places


def load_cluster(path: Path) -> Cluster:
    """Read `config/cluster.yaml`."""
    return validate(Cluster, read_yaml(path), path)


def load_published_config(path: Path) -> PublishedConfig:
    """Read `config.yaml` of a published model's initial weights."""
    return validate(PublishedConfig, read_yaml(path), path)


def load_resolved_study(path: Path) -> ResolvedStudy:
    """Read `study.yaml` of a results folder."""
    return validate(ResolvedStudy, read_yaml(path), path)


def load_run_config(path: Path) -> RunConfig:
    """Read `config.yaml` of a run folder."""
    return validate(RunConfig, read_yaml(path), path)


def load_model(path: Path) -> LocalModel | VerlModel | VllmModel:
    """Read a file of ``config/models``."""
    kind: Any = Model  # a union, which is no type
    return validate(kind, read_yaml(path), path)


def load_initial_config(path: Path) -> InitialConfig:
    """Read `config.yaml` of a model's initial weights."""
    return validate(InitialConfig, read_yaml(path), path)


def load_data_config(path: Path) -> Chain | Rows | Union:
    """Read the configuration of a training set or benchmark in a results folder."""
    kind: Any = Dataset
    return validate(kind, read_yaml(path), path)


def _check_names(resolved: ResolvedStudy, path: Path) -> None:
    for name in resolved.models:
        if name in RESERVED_FOLDERS:
            raise UserError(f"{path}: models: {name!r} is a folder of every study; rename it")
    if RESERVED_COLUMN in resolved.benchmarks:
        raise UserError(f"{path}: benchmarks: {RESERVED_COLUMN!r} is the macro average; rename it")
    if BASELINE in resolved.methods:
        raise UserError(f"{path}: methods: {BASELINE!r} stands for models as they come; rename it")


def _check_models(resolved: ResolvedStudy, path: Path) -> None:
    """Refuse runs of models that cannot be trained."""
    for name in resolved.trained_models():
        if isinstance(resolved.models[name], VllmModel):
            raise UserError(
                f"{path}: models: {name!r} has backend vllm, which is evaluated only; name it "
                f"under baselines"
            )


def _check_runs(resolved: ResolvedStudy, path: Path) -> None:
    runs = resolved.runs()
    twice = [run for i, run in enumerate(runs) if run in runs[:i]]
    if twice:
        raise UserError(
            f"{path}: extra_runs: {twice[0].name} stands twice or is in the grid; keep one"
        )


def _check_options(resolved: ResolvedStudy, known: dict[str, dict[str, Path]], path: Path) -> None:
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


def _check_prompts(resolved: ResolvedStudy, path: Path) -> None:
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


def _with_all_parameters(method: Method, path: Path) -> Method:
    """Check the parameters and fill in the defaults: what a file leaves out is still told."""
    # Imported here: torch takes seconds to load, and most commands do not need it.
    from respo import objectives

    for name, value in method.parameters.items():
        if isinstance(value, str) and NUMBER.fullmatch(value):
            raise UserError(f"{path}: parameters.{name}: {_text_for_number(value)}")
    try:
        known = objectives.objective_names()
    except ValueError as error:  # a file of the user's own
        raise UserError(str(error)) from None
    try:
        parameters = objectives.check_parameters(method.objective, method.parameters)
    except ValueError as error:
        key = "parameters" if method.objective in known else "objective"
        raise UserError(f"{path}: {key}: {error}") from None
    return method.model_copy(update={"parameters": parameters})


def _named(known: dict[str, Path], name: str, where: str, folder: Path) -> Path:
    """Return the YAML file of a name, or tell which names there are."""
    if name in known:
        return known[name]
    raise UserError(
        f"{where}: {name!r} is not a file of {folder}; there are {', '.join(known) or 'none'}"
        + _suggestion(name, known)
    )


def _suggestion(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def validate(kind: type[M], data: dict[str, Any], path: Path | str) -> M:
    """Build a model from plain data.

    Args:
        kind: a model, or a union of models that one key tells apart.
        data: keys and values.
        path: where they stand, for messages.

    Raises:
        UserError: one line per problem: file, key, value, what is allowed.
    """
    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        lines = [f"{path}: {_describe(kind, problem)}" for problem in error.errors()]
        raise UserError("\n       ".join(lines)) from None


def _describe(kind: Any, problem: ErrorDetails) -> str:
    keys, model = _place(kind, problem["loc"])
    key, value = ".".join(keys), problem["input"]
    message = problem["msg"].removeprefix("Value error, ")
    match problem["type"]:
        case "extra_forbidden":
            known = list(model.model_fields)
            hint = _suggestion(keys[-1], known)
            return f"{key}: unknown key{hint}; allowed: {', '.join(known)}"
        case "missing":
            return f"{key}: is missing; add the key"
        case "union_tag_not_found" | "union_tag_invalid" as fault:
            tag = problem["ctx"]["discriminator"].strip("'")
            key = ".".join([*keys, tag])
            if fault == "union_tag_not_found":
                return f"{key}: is missing; add the key"
            return (
                f"{key}: {problem['ctx']['tag']!r} is not allowed: input should be "
                f"{problem['ctx']['expected_tags']}"
            )
        case "value_error":
            # Messages of the validators name key and value themselves.
            return f"{key}: {message}" if key else message
        case "float_type" | "int_type" if isinstance(value, str) and NUMBER.fullmatch(value):
            return f"{key}: {_text_for_number(value)}"
        case _:
            return f"{key}: {value!r} is not allowed: {message[0].lower()}{message[1:]}"


def _text_for_number(value: str) -> str:
    number = re.sub(r"^([-+]?\d+)[eE]", r"\1.0e", value)
    number = re.sub(r"[eE](\d)", r"e+\1", number)
    return (
        f"{value!r} is text to YAML, not a number; write it unquoted, and an exponent after a "
        f"point and with a sign: {number}"
    )


def _place(kind: Any, location: tuple[int | str, ...]) -> tuple[list[str], Any]:
    """Return the keys of a location and the model that the last one is in."""
    keys: list[str] = []
    model = None
    for part in location:
        kind = _bare(kind)
        models = models_in(kind)
        if get_origin(kind) not in (dict, list) and len(models) > 1:
            # Pydantic names the variant of a union as if it were a key.
            kind = next(variant for variant in models if part in _tags(variant))
            continue
        keys.append(str(part))
        if get_origin(kind) in (dict, list):
            kind = get_args(kind)[-1]
        elif models:
            model = models[0]
            kind = model.model_fields[str(part)].annotation if part in model.model_fields else None
    return keys, model


def _bare(kind: Any) -> Any:
    """Return an annotation without its metadata and without None."""
    if get_origin(kind) is Annotated:
        return _bare(get_args(kind)[0])
    options = [option for option in get_args(kind) if option is not NoneType]
    return _bare(options[0]) if NoneType in get_args(kind) and len(options) == 1 else kind


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """Return the models that an annotation names: several for a union of them."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for argument in get_args(annotation) for model in models_in(argument)]


def _tags(model: type[BaseModel]) -> set[Any]:
    """Return the values that tell a model from the others of its union."""
    literals = [field.annotation for field in model.model_fields.values()]
    return {value for kind in literals if get_origin(kind) is Literal for value in get_args(kind)}
