"""A study with everything it names: its runs, what each depends on, and where each lies."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

from respo.config.schema import (
    Benchmark,
    Chain,
    Column,
    Dataset,
    InitialConfig,
    LocalModel,
    Method,
    Model,
    Objective,
    Overrides,
    Rows,
    RunConfig,
    Strict,
    Study,
    Training,
)
from respo.config.yaml import canonical

# Folders of results/<study> beside those of the models.
RESERVED_FOLDERS = ("data", "initial", "tables", "figures", "logs", "benchmarks")
# The column of the macro average, beside those of the benchmarks.
RESERVED_COLUMN = "macro"

OPTIONS = set(Overrides.model_fields)


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
        """List all runs, in the order of the tables: model, staleness, method, seed."""
        study = self.study
        blocks = [(study.models, study.staleness, study.methods, study.seeds)]
        for extra in study.extra_runs:
            models, seeds = extra.models or study.models, extra.seeds or study.seeds
            blocks.append((models, extra.staleness, extra.methods, seeds))
        runs = [
            Run(model, method, staleness, seed)
            for block in blocks
            for model, staleness, method, seed in product(*block)
        ]
        models, methods = list(self.models), list(self.methods)

        def position(run: Run) -> tuple[int, int, int]:
            return models.index(run.model), run.staleness, methods.index(run.method)

        return sorted(runs, key=position)

    def run_config(self, run: Run, objective_code: str) -> RunConfig:
        """Gather what the training of a run depends on.

        Args:
            run: one of `runs`.
            objective_code: hash of the objective's formula, see `respo.objectives.code_hash`.
        """
        method = self.methods[run.method]
        return RunConfig(
            model=self.models[run.model].policy,
            objective=Objective(objective=method.objective, parameters=method.parameters),
            objective_code=objective_code,
            staleness=run.staleness,
            seed=run.seed,
            training=self.training(run),
            train_data=self.datasets[self.study.train_data],
        )

    def training(self, run: Run) -> Training:
        """Return a run's settings: those of its method, else of its model, else of the study.

        Whether its model can be trained with them is for `run_config` to say.
        """
        levels = [getattr(self, level)[name] for level, name in self.levels(run)]
        own = [level.model_dump(exclude_none=True, include=OPTIONS) for level in levels]
        settings = {name: getattr(self.study, name) for name in Training.model_fields}
        for options in reversed(own):
            settings |= options
        return Training(**settings)

    @staticmethod
    def levels(run: Run) -> list[tuple[str, str]]:
        """Return kind and name of the files that go before the study, the first of all first."""
        return [("methods", run.method), ("models", run.model)]

    def local_models(self) -> dict[str, LocalModel]:
        """Return the models whose initial weights are made here."""
        return {name: m for name, m in self.models.items() if isinstance(m, LocalModel)}

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

        def data_text(rows: Chain | Rows) -> str:
            return _canonical(rows, exclude=set(Column.model_fields))

        texts: dict[str, Callable[[], str]] = {"study.yaml": lambda: _canonical(self)}
        for side, known in (("train", self.datasets), ("held_out", self.benchmarks)):
            for name, rows in known.items():
                texts[f"data/{side}/{name}.yaml"] = partial(data_text, rows)
        for model in self.local_models():
            texts[f"initial/{model}/config.yaml"] = partial(self._initial_text, model)
        for run in self.runs():
            texts[f"{run.name}/config.yaml"] = partial(run_text, run)
        return {str(study_folder / name): text for name, text in texts.items()}

    def _initial_text(self, model: str) -> str:
        return _canonical(self.initial_config(model))


def _canonical(model: Strict, exclude: set[str] | None = None) -> str:
    return canonical(model.model_dump(mode="json", exclude=exclude))
