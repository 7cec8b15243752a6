"""The YAML files of `config` and of a results folder, read into validated objects."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from respo.cli import UserError
from respo.config.checks import (
    check_keys,
    check_models,
    check_names,
    check_options,
    check_prompts,
    check_rewards,
    check_runs,
)
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
    Published,
    PublishedConfig,
    RunConfig,
    Settings,
    Study,
    VerlModel,
    VllmModel,
)
from respo.config.study import ResolvedStudy
from respo.config.validate import suggestion, text_for_number, validate
from respo.config.yaml import NUMBER, read_yaml


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
    values = read_yaml(path)
    check_keys(values, path)
    study = validate(Study, values, path)
    named = _places(study, "methods", path)
    if own_methods and not named:
        raise UserError(f"own_methods: study {name!r} trains nothing; choose another, or leave it")
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
    check_names(resolved, path)
    check_models(resolved, path)
    check_runs(resolved, path)
    check_rewards(resolved, path)
    files = {
        "methods": method_files(config, own_methods),
        "models": _yaml_files(config / "models"),
    }
    check_options(resolved, files, path)
    check_prompts(resolved, path)
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
    places = {study.train_data: f"{path}: train_data"} if study.train_data else {}
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


def load_data_config(path: Path) -> tuple[Chain | Published, int | None]:
    """Read the configuration of a training set or benchmark in a results folder.

    Returns:
        What the rows are, and the version of a benchmark.
    """
    kind: Any = Dataset
    values = read_yaml(path)
    version = values.pop("version", None)
    return validate(kind, values, path), version


def _with_all_parameters(method: Method, path: Path) -> Method:
    """Check the parameters and fill in the defaults: what a file leaves out is still told."""
    # Imported here: torch takes seconds to load, and most commands do not need it.
    from respo import objectives

    for name, value in method.parameters.items():
        if isinstance(value, str) and NUMBER.fullmatch(value):
            raise UserError(f"{path}: parameters.{name}: {text_for_number(value)}")
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
        + suggestion(name, known)
    )
