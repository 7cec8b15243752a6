"""The settings that the runs of a model share, from the configuration. ReSPO, Table 2.

What a method sets itself is in Table 3.
"""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from respo.config import Run
from respo.config.schema import LocalModel, Training, VerlModel
from respo.config.study import OPTIONS, ResolvedStudy
from respo.reporting import labels
from respo.reporting.layout import Block, Cell, Table, text
from respo.reporting.results import Results

PRINTED = ()
SECTIONS = ()
TITLE = "shared settings"


class Setting(NamedTuple):
    """A run and its settings."""

    study: ResolvedStudy
    run: Run
    training: Training

    @property
    def model(self) -> LocalModel | VerlModel:
        """The run's model."""
        model = self.study.models[self.run.model]
        assert isinstance(model, LocalModel | VerlModel)  # others are never trained
        return model


# Option of a method that may override the value, and how the value of a run is shown.
Shown = tuple[str | None, Callable[[Setting], str]]


def applies(study: ResolvedStudy) -> str | None:
    """Return why the table cannot be made for a study; None if it can."""
    return None if study.runs() else "shows settings of training, and the study trains nothing"


def inputs(study: ResolvedStudy) -> list[Path]:
    """Return the files that it is made from: none but the study itself."""
    return []


def make(results: Results) -> Table:
    """Lay out a row per setting, a column per model that is trained."""
    study = results.study
    columns = [text("setting", "Setting")]
    columns += [text(name, study.models[name].label) for name in study.trained_models()]
    settings = {
        model: [
            Setting(study, run, study.training(run)) for run in study.runs() if run.model == model
        ]
        for model in study.trained_models()
    }
    rows: list[list[Cell]] = [
        [name, *(_values(option, show, of_model) for of_model in settings.values())]
        for name, (option, show) in ROWS.items()
    ]
    evaluated = {run.model for run in study.evaluated()}
    rows += [
        [name, *(show(study, model) if model in evaluated else "" for model in settings)]
        for name, show in EVALUATION.items()
    ]
    notes = [
        "Several values: runs of the model differ, by N or in blocks of extra runs. What a method "
        "sets itself is in the table of the methods.",
    ]
    if study.study.optimizer.warmup_updates:
        notes.append(
            "Updates of warm-up: the learning rate grows linearly to its constant value; verl "
            "moves it once per rollout batch and begins at 0, so that the first rollout batch "
            "leaves the weights as they are."
        )
    return Table(TITLE, columns, [Block(rows, ranked=False)], notes)


def _values(option: str | None, show: Callable[[Setting], str], settings: list[Setting]) -> str:
    """Join the distinct values of a model's runs, without those of methods with their own."""
    shared = [
        s
        for s in settings
        if option is None or getattr(s.study.methods[s.run.method], option) is None
    ]
    return _joined(show(setting) for setting in shared) or "by method"


def _joined(values: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(values))  # a comma stands between thousands


def _checkpoint(setting: Setting) -> str:
    if isinstance(setting.model, LocalModel):
        return f"made here, {setting.model.warm_start.steps:,} supervised steps"
    checkpoint = setting.model.checkpoint
    if checkpoint.hub is None:
        return str(checkpoint.path)
    return f"{checkpoint.hub} at {str(checkpoint.revision)[:7]}"


def _backend(setting: Setting) -> str:
    if isinstance(setting.model, LocalModel):
        return "local"
    return f"verl, {setting.model.engine}"


def _hardware(setting: Setting) -> str:
    if isinstance(setting.model, LocalModel):
        return "one process"
    resources = setting.model.resources
    return f"{resources.nodes} × {resources.gpus_per_node} GPUs"


def _overlong(setting: Setting) -> str:
    training = setting.training
    if not training.overlong_buffer:
        return "none"
    return f"{training.overlong_buffer:,} tokens, factor {training.overlong_factor:g}"


def _thousands(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _or_none(value: float) -> str:
    return f"{value:g}" if value else "none"


def _of(name: str) -> Callable[[Setting], str]:
    return lambda setting: str(getattr(setting.training, name))


def _optimizer(name: str) -> Callable[[Setting], str]:
    return lambda setting: f"{getattr(setting.training.optimizer, name):g}"


ROWS: dict[str, Shown] = {
    "Initial weights": (None, _checkpoint),
    "Trainer": (None, _backend),
    "Hardware": (None, _hardware),
    "Training data": (None, lambda s: s.study.train_data(s.run)),
    "Reward": (None, lambda s: labels.verifier(s.training.reward)),
    "Prompt limit, tokens": (None, lambda s: f"{s.model.max_prompt_tokens:,}"),
    "Response limit, tokens": (None, lambda s: f"{s.model.max_response_tokens:,}"),
    "Length penalty, last tokens before the limit": ("overlong_buffer", _overlong),
    "Mini-batch M, prompts": (None, _of("mini_batch")),
    "Responses per prompt G": (None, _of("rollouts_per_prompt")),
    "Updates per rollout batch N": (None, lambda s: str(s.run.staleness)),
    "Rollout batch N × M, prompts": (
        None,
        lambda s: f"{s.run.staleness * s.training.mini_batch:,}",
    ),
    "Policy updates": (None, lambda s: f"{s.training.updates:,}"),
    "Prompts trained on": (None, lambda s: f"{s.training.updates * s.training.mini_batch:,}"),
    "Seeds": (None, lambda s: str(s.run.seed)),
    "Rollout temperature": (None, lambda s: f"{s.training.temperature:g}"),
    "Loss aggregation": ("loss_aggregation", _of("loss_aggregation")),
    "KL coefficient": ("kl_coefficient", lambda s: _or_none(s.training.kl_coefficient)),
    "Entropy coefficient": (
        "entropy_coefficient",
        lambda s: _or_none(s.training.entropy_coefficient),
    ),
    "Dynamic sampling, rounds": (
        "dynamic_sampling",
        lambda s: _or_none(s.training.dynamic_sampling),
    ),
    "Routing replay": ("routing_replay", _of("routing_replay")),
    "Learning rate of AdamW, constant": (None, _optimizer("learning_rate")),
    "Updates of warm-up": (None, _optimizer("warmup_updates")),
    "Betas": (None, lambda s: " and ".join(f"{b:g}" for b in s.training.optimizer.betas)),
    "Weight decay": (None, _optimizer("weight_decay")),
    "Gradient clip": (None, _optimizer("gradient_clip")),
}
assert {option for option, _ in ROWS.values() if option} == OPTIONS - {"overlong_factor"}


def _sampling(name: str) -> Callable[[ResolvedStudy, str], str]:
    def show(study: ResolvedStudy, model: str) -> str:
        return _joined(
            _thousands(getattr(study.sampling(b, model), name)) for b in study.benchmarks
        )

    return show


def _samples(study: ResolvedStudy, model: str) -> str:
    by_number: dict[int, list[str]] = {}
    for name, benchmark in study.benchmarks.items():
        by_number.setdefault(study.samples(name), []).append(benchmark.label)
    if len(by_number) == 1:
        return str(*by_number)
    return "; ".join(f"{number}: {', '.join(labels)}" for number, labels in by_number.items())


EVALUATION: dict[str, Callable[[ResolvedStudy, str], str]] = {
    "Evaluated updates": lambda study, _: _joined(
        f"{update:,}" for update in study.study.evaluation.updates
    ),
    "Responses per problem K": _samples,
    "Evaluation temperature": _sampling("temperature"),
    "Evaluation top-p": _sampling("top_p"),
    "Evaluation limit, tokens": _sampling("max_response_tokens"),
    "Verifier": lambda study, _: _joined(
        labels.verifier(b.verifier) for b in study.benchmarks.values()
    ),
}
