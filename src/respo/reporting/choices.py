"""Which runs of a study a figure shows, and which of their files it reads.

Snakemake asks at every start, in its jobs too: nothing here may need matplotlib.
"""

import re
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from respo.config import Run
from respo.config.schema import Architecture, LocalModel, Method, VerlModel
from respo.config.study import BASELINE, ResolvedStudy
from respo.reporting import selection
from respo.reporting.selection import SWEEP, Family, full_length, trained

METRICS, CELLS, LAST_CELLS, SCORES = "metrics", "cells", "last cells", "scores"


def grid(study: ResolvedStudy) -> list[Run]:
    """Return the runs of the study's own methods and models, without those beside the grid."""
    return [
        run
        for run in full_length(study)
        if run.method in study.study.methods and run.model in study.study.models
    ]


def off_policy(study: ResolvedStudy) -> list[Run]:
    """Return the runs of the study's own methods with more than one update per rollout batch."""
    return [
        run for run in full_length(study) if run.method in study.study.methods and run.staleness > 1
    ]


def dense(study: ResolvedStudy) -> list[Run]:
    """Return the runs of full length of dense models."""
    return [run for run in full_length(study) if not _is_mixture(study, run.model)]


def mixtures(study: ResolvedStudy) -> list[Run]:
    """Return the runs of full length of mixtures of experts."""
    return [run for run in full_length(study) if _is_mixture(study, run.model)]


def dual_clip(study: ResolvedStudy) -> list[Run]:
    """Return the runs, with and without a dual clip, of methods that differ in nothing else."""
    kinds: dict[str, list[str]] = {}
    for name, method in study.methods.items():
        if "dual_clip" in method.parameters:
            kinds.setdefault(_but_dual_clip(method), []).append(name)
    return [
        run
        for _, setting in groupby(full_length(study), key=lambda run: (run.model, run.staleness))
        for runs in [list(setting)]
        for run in runs
        if any(
            run.method in names and len({r.method for r in runs} & set(names)) > 1
            for names in kinds.values()
        )
    ]


def sweep(study: ResolvedStudy) -> list[str]:
    """Return the methods of the largest sweep among the runs of full length; none without any."""
    families: dict[Family, list[str]] = {}
    for run in selection.swept(study, full_length(study)):
        names = families.setdefault(selection.family(study.methods[run.method]), [])
        if run.method not in names:
            names.append(run.method)
    largest = max(families.values(), key=len, default=[])
    return [name for name in study.methods if name in largest]


def sweeps(study: ResolvedStudy) -> list[Run]:
    """Return the runs of the largest sweep, of each model and N that has enough of it."""
    swept, names = set(selection.swept(study, full_length(study))), sweep(study)
    return [run for run in full_length(study) if run in swept and run.method in names]


def one_at_a_time(study: ResolvedStudy) -> list[Run]:
    """Return part of a sweep, and the runs of models beside the grid.

    Of the model with the most methods of the sweep: the study's own one of them, and those that
    differ from it in one parameter (its values for both signs count as one).
    """
    swept = sweeps(study)
    methods = {
        model: list(dict.fromkeys(run.method for run in swept if run.model == model))
        for model in study.models
    }
    model = max(methods, key=lambda name: len(methods[name]))
    own = next((m for m in methods[model] if m in study.study.methods), *methods[model][:1] or [""])
    near = [
        name
        for name in methods[model]
        if len(_differing(study.methods[own], study.methods[name])) <= 1
    ]
    return [
        run
        for run in full_length(study)
        if (run.model == model and run.method in near)
        or (swept and run.model not in study.study.models)
    ]


def token_level(study: ResolvedStudy) -> list[str]:
    """Return the methods whose coefficient is a token's own."""
    return [name for name, m in study.methods.items() if is_of_token(m.objective)]


def is_of_token(objective: str) -> bool:
    """Tell whether the coefficient of a token depends on no other token of its response.

    Where it does, be it through a mean over the response, a picture over (pi_old, pi) of a token
    would show responses of one token alone.
    """
    from respo.objectives import is_sequence_level
    from respo.objectives.registry import get

    # Only what looks at a response as a whole needs to know where it ends.
    return not is_sequence_level(objective) and "mask_BT" not in get(objective).inputs


def all_benchmarks(study: ResolvedStudy) -> list[str]:
    """Return the benchmarks of a study."""
    return list(study.benchmarks)


def mathematics(study: ResolvedStudy) -> list[str]:
    """Return the benchmarks of aspo/table1, or all where there are none of them."""
    verifiers = {name: benchmark.verifier for name, benchmark in study.benchmarks.items()}
    found = [name for name, v in verifiers.items() if v in ("math_verify", "strict_box")]
    return found or all_benchmarks(study)


def most_sampled(study: ResolvedStudy) -> list[str]:
    """Return the benchmarks with the most samples per problem; of them AIME alone, if it is there.

    Of the MASPO paper's benchmarks all have as many samples, and its Section 5.2 names these two.
    """
    samples = {name: study.samples(name) for name in study.benchmarks}
    most = [name for name, number in samples.items() if number == max(samples.values())]
    return [name for name in most if name in ("aime24", "aime25")] or most


class Choice(NamedTuple):
    """Runs, files and benchmarks of a figure, and what a study lacks without such runs."""

    runs: Callable[[ResolvedStudy], list[Run]]
    reads: tuple[str, ...]
    lacking: str
    benchmarks: Callable[[ResolvedStudy], list[str]] = all_benchmarks


CHOICES = {
    "respo/fig3": Choice(full_length, (METRICS, SCORES), "training runs of full length"),
    "respo/fig4": Choice(trained, (SCORES,), "training runs that are evaluated"),
    "respo/fig5": Choice(dense, (METRICS, CELLS), "runs of a dense model"),
    "respo/fig6": Choice(mixtures, (METRICS, CELLS), "runs of a mixture of experts"),
    "aspo/fig2": Choice(full_length, (METRICS, CELLS), "training runs of full length", mathematics),
    "aspo/fig3": Choice(off_policy, (METRICS,), "runs of its own methods with N > 1"),
    "aspo/fig8": Choice(
        dual_clip, (METRICS,), "two methods that differ in their dual clip alone, on one model"
    ),
    "maspo/fig3": Choice(
        grid, (METRICS, LAST_CELLS), "runs of its own methods and models", most_sampled
    ),
    "maspo/fig4": Choice(
        one_at_a_time, (METRICS,), f"{SWEEP} methods of one objective on one model"
    ),
    "maspo/fig8": Choice(sweeps, (METRICS,), f"{SWEEP} methods of one objective on one model"),
}
# These are drawn from the code of the objectives, not from results.
OF_OBJECTIVES: dict[str, Callable[[ResolvedStudy], list[str]]] = {
    "respo/fig1": lambda study: list(study.methods),
    "aspo/fig4": token_level,
}


def refusal(figure: str, study: ResolvedStudy) -> str | None:
    """Say what a study lacks to have a figure; None where it can."""
    if figure in OF_OBJECTIVES:
        found, lacking = bool(OF_OBJECTIVES[figure](study)), "methods whose c is a token's own"
    else:
        found, lacking = bool(CHOICES[figure].runs(study)), CHOICES[figure].lacking
    return None if found else f"needs {lacking}, and the study has none"


def objectives(figure: str, study: ResolvedStudy) -> list[str]:
    """Return the objectives whose code a figure is drawn from, one per method."""
    names = OF_OBJECTIVES[figure](study) if figure in OF_OBJECTIVES else []
    return [study.methods[name].objective for name in names]


def inputs(figure: str, study: ResolvedStudy, folder: Path) -> list[Path]:
    """Return the files of a results folder that a figure is drawn from."""
    if figure in OF_OBJECTIVES:
        return []
    choice = CHOICES[figure]
    runs, benchmarks = choice.runs(study), choice.benchmarks(study)
    paths = []
    if METRICS in choice.reads:
        names = ("metrics.parquet", "config.yaml")
        paths += [run.folder(folder) / name for run in runs for name in names]
    if CELLS in choice.reads:
        paths += cells(study, [*runs, *baselines(study, runs)], benchmarks, folder)
    last = cells(study, runs, benchmarks, folder, last=True)
    if LAST_CELLS in choice.reads:
        paths += last
    if SCORES in choice.reads:
        paths += [path.with_name("scores.parquet") for path in last]
    return paths


def cells(
    study: ResolvedStudy,
    runs: Sequence[Run],
    benchmarks: Sequence[str],
    folder: Path,
    last: bool = False,
) -> list[Path]:
    """Return the cells of those runs that are evaluated: of all their checkpoints, or the last."""
    is_evaluated = set(study.evaluated())
    return [
        run.cell(folder, update, benchmark)
        for run in runs
        if run in is_evaluated
        for benchmark in benchmarks
        for update in study.checkpoints(run)[-1 if last else 0 :]
    ]


def baselines(study: ResolvedStudy, runs: Sequence[Run]) -> list[Run]:
    """Return the models of runs as they come, where the study evaluates them."""
    models = dict.fromkeys(run.model for run in runs)
    return [Run(model, BASELINE, 0, 0) for model in models if model in study.study.baselines]


def _is_mixture(study: ResolvedStudy, name: str) -> bool:
    match study.models[name]:
        case VerlModel() as model:
            return model.mixture_of_experts
        case LocalModel(architecture=Architecture(model_type=kind)):
            return kind == "qwen3_moe"
        case _:
            return False


def _but_dual_clip(method: Method) -> str:
    rest = {k: v for k, v in method.parameters.items() if k != "dual_clip"}
    options = method.model_dump(exclude={"label", "source", "deviations", "parameters"})
    return repr((sorted(rest.items()), sorted(options.items())))


def _differing(first: Method, second: Method) -> set[str]:
    """Return the parameters that differ; `beta_low` and `beta_high` are both `beta`."""
    keys = first.parameters.keys() | second.parameters.keys()
    return {
        re.sub("_(low|high|pos|neg)$", "", key)
        for key in keys
        if first.parameters.get(key) != second.parameters.get(key)
    }
