"""Which runs of a study are the rows of a table.

Snakemake asks at every start: nothing here may need torch or matplotlib.
"""

from collections.abc import Sequence

from respo.config import Run
from respo.config.schema import Method
from respo.config.study import OPTIONS, ResolvedStudy

Family = tuple[str, str]
# As many parameter sets of one objective are a sweep.
SWEEP = 3


def reference(study: ResolvedStudy) -> str:
    """Return the method that others are compared with: GRPO, or else the study's first."""
    methods = study.study.methods
    return "grpo" if "grpo" in methods else methods[0]


def trained(study: ResolvedStudy) -> list[Run]:
    """Return the trained runs that are evaluated."""
    return [run for run in study.evaluated() if not run.is_baseline]


def full_length(study: ResolvedStudy) -> list[Run]:
    """Return the runs of as many updates as the study says."""
    return [run for run in study.runs() if study.training(run).updates == study.study.updates]


def main(study: ResolvedStudy) -> list[Run]:
    """Return what is evaluated of the study's own methods, and models as they come."""
    own = study.study.methods
    return [run for run in study.evaluated() if run.is_baseline or run.method in own]


def grid(study: ResolvedStudy) -> list[Run]:
    """Return what is evaluated of the study's own methods and models, with these as they come."""
    return [run for run in main(study) if run.model in study.study.models]


def beside_grid(study: ResolvedStudy) -> list[Run]:
    """Return the trained runs of models that are not the study's own."""
    return [run for run in trained(study) if run.model not in study.study.models]


def ablations(study: ResolvedStudy) -> list[Run]:
    """Return the runs of each model and N that has methods beside the study's own."""
    own = study.study.methods
    runs = trained(study)
    places = {(run.model, run.staleness) for run in runs if run.method not in own}
    return [run for run in runs if (run.model, run.staleness) in places]


def sweeps(study: ResolvedStudy) -> list[Run]:
    """Return the evaluated runs of sweeps; those of a family are adjacent."""
    return swept(study, trained(study))


def swept(study: ResolvedStudy, runs: Sequence[Run]) -> list[Run]:
    """Return those of some runs whose model and N has a sweep of their family.

    That is at least `SWEEP` parameter sets; the runs of a family are adjacent.
    """
    groups: dict[tuple[str, int, Family], list[Run]] = {}
    for run in runs:
        key = (run.model, run.staleness, family(study.methods[run.method]))
        groups.setdefault(key, []).append(run)
    return [
        run
        for of_group in groups.values()
        for run in of_group
        if len({_parameters(study.methods[run.method]) for run in of_group}) >= SWEEP
    ]


def family(method: Method) -> Family:
    """Return what methods of one sweep share: the objective, and the options that they set."""
    return method.objective, repr(options(method))


def options(method: Method) -> dict[str, object]:
    """Return the options of a run that a method sets itself."""
    return method.model_dump(include=OPTIONS, exclude_none=True)


def settings(method: Method) -> dict[str, object]:
    """Return the parameters of a method and the options that it sets itself."""
    return {**method.parameters, **options(method)}


def differing(methods: Sequence[Method]) -> list[str]:
    """Return the parameters and options in which methods of one objective differ."""
    values = [settings(method) for method in methods]
    return [
        key
        for key in dict.fromkeys(key for of_method in values for key in of_method)
        if len({repr(of_method.get(key)) for of_method in values}) > 1
    ]


def diagnostic(study: ResolvedStudy) -> list[Run]:
    """Return the runs whose weights by log W are shown.

    Those that are trained for diagnostics alone, and not evaluated; where there are none, all with
    the largest N.
    """
    runs, evaluated = study.runs(), set(study.evaluated())
    alone = [run for run in runs if run not in evaluated]
    largest = max((run.staleness for run in runs), default=0)
    return alone or [run for run in runs if run.staleness == largest]


def replays(study: ResolvedStudy) -> list[Run]:
    """Return the runs with routing replay and those that differ from them in nothing else."""
    runs = study.runs()
    with_replay = [run for run in runs if study.training(run).routing_replay != "none"]
    matched = {(run.model, run.staleness, _but_replay(study, run)) for run in with_replay}
    return [
        run
        for run in runs
        if (run.model, run.staleness, _but_replay(study, run)) in matched
        and study.training(run).updates == study.study.updates
    ]


def _parameters(method: Method) -> str:
    return repr(sorted(method.parameters.items()))


def _but_replay(study: ResolvedStudy, run: Run) -> str:
    """Return all that the training of a run depends on, but its seed and routing replay."""
    method = study.methods[run.method]
    training = study.training(run).model_dump(exclude={"routing_replay"})
    return repr((method.objective, _parameters(method), training, study.train_data(run)))
