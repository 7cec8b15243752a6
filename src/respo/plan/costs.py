"""What the jobs of a study cost, from the estimates in its models' files."""

from dataclasses import dataclass
from math import ceil

from respo.config import ResolvedStudy, Run
from respo.config.schema import (
    Estimate,
    LocalModel,
    Model,
    VerlModel,
)

HOUR = 3600.0
# Of a response on disk, as text: a token of mathematics is about four characters.
GB_PER_TOKEN = 4e-9
# Cells that one job of Slurm scores: `group-components` of profiles/slurm.
CELLS_PER_JOB = 12
# While a state is written, those before it are still there.
STATE_IN_WRITING = 1


@dataclass(frozen=True)
class ModelCosts:
    """What all jobs of a model cost; what is not estimated is None.

    Hours are wall time of one job after the other; disk is in GB.
    """

    model: str
    runs: int
    gpus: int
    longest_run_hours: float | None
    training_gpu_hours: float | None
    evaluation_gpu_hours: float | None
    weights_gb: float | None
    # Of one run while it is trained; 0 without runs.
    states_gb: float | None
    # The longest wall time that a job may have.
    limit_hours: float


@dataclass(frozen=True)
class LongestChain:
    """The jobs, one after the other, that a study with any number of GPUs has to wait for."""

    run: Run
    training_hours: float
    update: int
    benchmark: str
    evaluation_hours: float

    @property
    def hours(self) -> float:
        """Wall time of the chain."""
        return self.training_hours + self.evaluation_hours


def jobs(resolved: ResolvedStudy) -> dict[str, int]:
    """Return how many jobs snakemake runs for a whole study, by kind."""
    study, runs, models = resolved.study, len(resolved.runs()), len(resolved.models)
    cells = sum(len(resolved.checkpoints(run)) for run in resolved.evaluated())
    cells *= len(study.benchmarks)
    prompts = len(resolved.datasets) + len(resolved.benchmarks)
    return {
        "configuration files": 1 + prompts + models + runs,
        "prompts": prompts,
        "initial weights, baselines": models + len(study.baselines),
        "training": runs,
        "evaluation: sampling": cells,
        "evaluation: scoring": cells,
        "evaluation: cells": cells,
        # With the page to explore.
        "tables, figures, report": len(study.tables) + len(study.figures) + 2,
    }


def slurm_jobs(resolved: ResolvedStudy) -> int:
    """Return how many jobs Slurm gets: cells go several to one, and small files are made here."""
    number = jobs(resolved)
    alone = ("training", "evaluation: sampling", "tables, figures, report")
    cells = ceil(number["evaluation: cells"] / CELLS_PER_JOB)
    return sum(number[kind] for kind in alone) + cells + len(resolved.local_models())


def training_hours(resolved: ResolvedStudy, run: Run) -> float | None:
    """Return the wall time of a run; 0 for a baseline, None without an estimate."""
    if run.is_baseline:
        return 0.0
    estimate = resolved.models[run.model].resources.estimate
    if not isinstance(estimate, Estimate):
        return None
    return resolved.training(run).updates * estimate.update_seconds / HOUR


def evaluation_hours(resolved: ResolvedStudy, run: Run, benchmark: str) -> float | None:
    """Return the wall time of sampling a benchmark once, None without an estimate."""
    estimate = resolved.models[run.model].resources.estimate
    number = responses(resolved, benchmark)
    return number / estimate.responses_per_second / HOUR if estimate and number else None


def responses(resolved: ResolvedStudy, benchmark: str) -> int | None:
    """Return the number of responses to a benchmark, None if its file does not say the rows."""
    rows = resolved.benchmarks[benchmark].rows
    return rows * resolved.samples(benchmark) if rows else None


def model_costs(resolved: ResolvedStudy) -> list[ModelCosts]:
    """Return the costs of each model, in the order of the study."""
    return [_of_model(resolved, name) for name in resolved.models]


def _of_model(resolved: ResolvedStudy, name: str) -> ModelCosts:
    model = resolved.models[name]
    resources, estimate = model.resources, model.resources.estimate
    runs = [run for run in resolved.runs() if run.model == name]
    training = [training_hours(resolved, run) for run in runs]
    evaluation = [
        evaluation_hours(resolved, run, benchmark)
        for run in resolved.evaluated()
        if run.model == name
        for _ in resolved.checkpoints(run)
        for benchmark in resolved.study.benchmarks
    ]
    hours = _sum(training)
    evaluated = _sum(evaluation)
    kept = sum(len(resolved.training(run).checkpoints) for run in runs)
    states = 0.0 if not runs else None
    if runs and isinstance(estimate, Estimate):
        keep_last = model.resources.keep_last if isinstance(model, VerlModel) else 1
        states = (keep_last + STATE_IN_WRITING) * estimate.state_gb
    return ModelCosts(
        model=name,
        runs=len(runs),
        gpus=training_gpus(model),
        longest_run_hours=max((h for h in training if h is not None), default=None),
        training_gpu_hours=None if hours is None else hours * training_gpus(model),
        evaluation_gpu_hours=None if evaluated is None else evaluated * evaluation_gpus(model),
        weights_gb=(kept + 1) * estimate.weights_gb if estimate else None,
        states_gb=states,
        limit_hours=resources.minutes / 60,
    )


def training_gpus(model: Model) -> int:
    """Return the GPUs of a training job; none for a model that is trained on this machine."""
    return model.resources.gpus if isinstance(model, VerlModel) else 0


def evaluation_gpus(model: Model) -> int:
    """Return the GPUs of an evaluation job."""
    if isinstance(model, LocalModel):
        return 0
    if isinstance(model, VerlModel):
        return model.resources.parallelism.rollout_tensor
    return model.resources.gpus


def generations_gb(resolved: ResolvedStudy) -> float:
    """Return the disk of all responses to benchmarks if each were as long as it may be."""
    tokens = sum(
        len(resolved.checkpoints(run))
        * (responses(resolved, name) or 0)
        * resolved.sampling(name, run.model).max_response_tokens
        for run in resolved.evaluated()
        for name in resolved.study.benchmarks
    )
    return tokens * GB_PER_TOKEN


def longest_chain(resolved: ResolvedStudy) -> LongestChain | None:
    """Return the longest chain: a run, then a benchmark at its last evaluated checkpoint.

    The other jobs take minutes. None without any estimate.
    """
    chains = []
    for run in resolved.evaluated():
        trained = training_hours(resolved, run)
        for benchmark in resolved.study.benchmarks:
            sampled = evaluation_hours(resolved, run, benchmark)
            if trained is not None and sampled is not None:
                last = max(resolved.checkpoints(run))
                chains.append(LongestChain(run, trained, last, benchmark, sampled))
    return max(chains, key=lambda chain: chain.hours, default=None)


def _sum(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None
