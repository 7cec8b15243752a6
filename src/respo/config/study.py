"""A study with everything it names: its runs, what each depends on, and where each lies."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import NamedTuple

from respo.config.schema import (
    Benchmark,
    Chain,
    Column,
    Dataset,
    ExtraRuns,
    InitialConfig,
    LocalModel,
    Method,
    Model,
    Objective,
    Overrides,
    PublishedConfig,
    RunConfig,
    Strict,
    Study,
    Training,
    VllmModel,
)
from respo.config.yaml import canonical

# Folders of results/<study> beside those of the models.
RESERVED_FOLDERS = ("data", "initial", "tables", "figures", "logs", "benchmarks")
# The column of the macro average, beside those of the benchmarks.
RESERVED_COLUMN = "macro"

# The name that models without training have in place of a method's.
BASELINE = "baseline"

OPTIONS = set(Overrides.model_fields)


class Sampling(NamedTuple):
    """How the responses of a model to a benchmark are sampled."""

    temperature: float
    top_p: float
    max_response_tokens: int


@dataclass(frozen=True)
class Run:
    """One training run: its path says which."""

    model: str
    method: str
    staleness: int
    seed: int

    @property
    def name(self) -> str:
        """The run's path below the study's folder, one level per coordinate."""
        return f"{self.model}/{self.method}/N{self.staleness}/seed{self.seed}"

    @property
    def is_baseline(self) -> bool:
        """Whether this is a model as it comes, with its weights at update 0."""
        return self.method == BASELINE

    def folder(self, study_folder: Path) -> Path:
        """The run's folder."""
        return study_folder / self.name

    def cell(self, study_folder: Path, update: int, benchmark: str) -> Path:
        """The file with the result of one checkpoint on one benchmark."""
        return self.folder(study_folder) / "eval" / str(update) / benchmark / "cell.json"


class ResolvedStudy(Strict):
    """A study and the contents of every file that it names; `study.yaml` of a results folder."""

    name: str
    study: Study
    methods: dict[str, Method]
    models: dict[str, Model]
    datasets: dict[str, Dataset]
    benchmarks: dict[str, Benchmark]

    def runs(self) -> list[Run]:
        """List all training runs, in the order of the tables: model, staleness, method, seed."""
        return self._in_order([run for run, _ in self._blocks()])

    def evaluated(self) -> list[Run]:
        """List what the tables show: baselines and runs, in their order."""
        baselines = [Run(model, BASELINE, 0, 0) for model in self.study.baselines]
        runs = [run for run, extra in self._blocks() if extra is None or extra.evaluate]
        return self._in_order([*baselines, *runs])

    def checkpoints(self, run: Run) -> list[int]:
        """Return the updates whose weights are evaluated, in ascending order."""
        return [0] if run.is_baseline else sorted(self.study.evaluation.updates)

    def samples(self, benchmark: str) -> int:
        """Return K, the number of responses to each problem."""
        return self.study.evaluation.samples.get(benchmark, self.benchmarks[benchmark].samples)

    def sampling(self, benchmark: str, model: str) -> Sampling:
        """Return how responses are sampled: as the benchmark says, else the study, else the model.

        Args:
            benchmark: one of `benchmarks`.
            model: one of `models`; of it only the response limit.
        """
        own, study = self.benchmarks[benchmark], self.study.evaluation
        limit = own.max_response_tokens or study.max_response_tokens
        return Sampling(
            temperature=own.temperature or study.temperature,
            top_p=own.top_p or study.top_p,
            max_response_tokens=limit or self.models[model].max_response_tokens,
        )

    def train_data(self, run: Run) -> str:
        """Return the name of a run's training set."""
        extra = self._extra[run]
        name = (extra and extra.train_data) or self.study.train_data
        assert name  # a study with methods has it
        return name

    def _blocks(self) -> Iterator[tuple[Run, ExtraRuns | None]]:
        """Yield each run of the grid, then those beside it, with the block that names it."""
        study = self.study
        for run in product(study.models, study.methods, study.staleness, study.seeds):
            yield Run(*run), None
        for extra in study.extra_runs:
            models, seeds = extra.models or study.models, extra.seeds or study.seeds
            for run in product(models, extra.methods, extra.staleness, seeds):
                yield Run(*run), extra

    @cached_property
    def _extra(self) -> dict[Run, ExtraRuns | None]:
        return dict(self._blocks())

    def _in_order(self, runs: list[Run]) -> list[Run]:
        models = {name: place for place, name in enumerate(self.models)}
        methods = {name: place for place, name in enumerate([BASELINE, *self.methods])}
        return sorted(runs, key=lambda run: (models[run.model], run.staleness, methods[run.method]))

    def run_config(self, run: Run, objective_code: str) -> RunConfig:
        """Gather what the training of a run depends on.

        Args:
            run: one of `runs`.
            objective_code: hash of the objective's formula, see `respo.objectives.code_hash`.
        """
        method, model = self.methods[run.method], self.models[run.model]
        assert not isinstance(model, VllmModel)  # `load_study` refuses to train them
        return RunConfig(
            model=model.policy,
            objective=Objective(objective=method.objective, parameters=method.parameters),
            objective_code=objective_code,
            staleness=run.staleness,
            seed=run.seed,
            training=self.training(run),
            train_data=self.datasets[self.train_data(run)],
        )

    def training(self, run: Run) -> Training:
        """Return a run's settings: those of its method, else of its model, else of the study.

        A block of extra runs may make them shorter, and add options of verl.

        Whether its model can be trained with them is for `run_config` to say.
        """
        levels = [getattr(self, level)[name] for level, name in self.levels(run)]
        own = [level.model_dump(exclude_none=True, include=OPTIONS) for level in levels]
        settings = {name: getattr(self.study, name) for name in Training.model_fields}
        for options in reversed(own):
            settings |= options
        if extra := self._extra[run]:
            updates = extra.updates or self.study.updates
            kept = {update for update in self.study.checkpoints if update < updates}
            settings |= {
                "updates": updates,
                "checkpoints": sorted(kept | {updates})
                if extra.updates
                else settings["checkpoints"],
                "verl_overrides": [*self.study.verl_overrides, *extra.verl_overrides],
            }
        return Training(**settings)

    @staticmethod
    def levels(run: Run) -> list[tuple[str, str]]:
        """Return kind and name of the files that go before the study, the first of all first."""
        return [("methods", run.method), ("models", run.model)]

    def local_models(self) -> dict[str, LocalModel]:
        """Return the models whose initial weights are made here."""
        return {name: m for name, m in self.models.items() if isinstance(m, LocalModel)}

    def trained_models(self) -> list[str]:
        """Return the names of the models that have runs."""
        return list(dict.fromkeys(run.model for run in self.runs()))

    def initial_config(self, model: str) -> InitialConfig:
        """Gather what the initial weights of a local model depend on."""
        policy = self.local_models()[model].policy
        data = self.datasets[policy.warm_start.data]
        assert isinstance(data, Chain)  # `load_study` refuses others
        return InitialConfig(model=policy, data=data)

    def config_texts(
        self, study_folder: Path, code_hash: Callable[[str], str]
    ) -> dict[str, Callable[[], str]]:
        """Return every configuration file of the results folder with the maker of its text.

        Args:
            study_folder: `results/STUDY`.
            code_hash: gives the hash of an objective's formula.
        """

        def run_text(run: Run) -> str:
            code = code_hash(self.methods[run.method].objective)
            return _canonical(self.run_config(run, code))

        def data_text(rows: Dataset) -> str:
            return _canonical(rows, exclude=set(Column.model_fields) - {"version"})

        texts: dict[str, Callable[[], str]] = {"study.yaml": lambda: _canonical(self)}
        for side, known in (("train", self.datasets), ("held_out", self.benchmarks)):
            for name, rows in known.items():
                texts[f"data/{side}/{name}.yaml"] = partial(data_text, rows)
        for model in self.models:
            texts[f"initial/{model}/config.yaml"] = partial(self._initial_text, model)
        for run in self.runs():
            texts[f"{run.name}/config.yaml"] = partial(run_text, run)
        return {str(study_folder / name): text for name, text in texts.items()}

    def _initial_text(self, name: str) -> str:
        model = self.models[name]
        if isinstance(model, LocalModel):
            return _canonical(self.initial_config(name))
        return _canonical(PublishedConfig(checkpoint=model.checkpoint))


def _canonical(model: Strict, exclude: set[str] | None = None) -> str:
    return canonical(model.model_dump(mode="json", exclude=exclude))
