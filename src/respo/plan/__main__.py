"""`python -m respo.plan --study NAME`: jobs, GPU-hours, disk and longest chain of a study.

They come from the `estimate` in the files of its models. To measure one, train a short run of the
model and evaluate it; `python -m respo.plan --calibrate RUN` prints the estimate to put there.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from respo.cli import command
from respo.config import ResolvedStudy, load_settings, load_study
from respo.plan.calibrate import calibrated
from respo.plan.costs import (
    ModelCosts,
    generations_gb,
    jobs,
    longest_chain,
    model_costs,
    responses,
    slurm_jobs,
)

HEAD = ("model", "runs", "GPUs", "hours/run", "training", "evaluation", "weights", "states")


@command
def main() -> None:
    """Parse the command line and print."""
    parser = argparse.ArgumentParser(
        prog="python -m respo.plan",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--study", help="a file of config/studies (default: of config.yaml)")
    parser.add_argument("--own-methods", help="a folder of your own (default: of config.yaml)")
    parser.add_argument("--config", type=Path, default=Path("config"), help="default: config")
    parser.add_argument(
        "--calibrate", type=Path, metavar="RUN", help="print the estimate that this run gives"
    )
    options = parser.parse_args()
    if options.calibrate:
        print(calibrated(options.calibrate, options.config))
        return
    given = {"study": options.study, "own_methods": options.own_methods}
    overrides = {key: value for key, value in given.items() if value is not None}
    settings = load_settings(options.config / "config.yaml", overrides)
    resolved = load_study(options.config, settings.study, settings.own_methods_folder)
    print("\n".join(plan(resolved)))


def plan(resolved: ResolvedStudy) -> Iterator[str]:
    """Yield the lines of the plan."""
    numbers = jobs(resolved)
    yield f"Study {resolved.name}: {resolved.study.title}"
    yield f"\nJobs: {sum(numbers.values())}; Slurm gets {slurm_jobs(resolved)}, the cells in groups"
    yield from _aligned([[f"  {kind}", str(number)] for kind, number in numbers.items()])
    costs = model_costs(resolved)
    yield "\nEstimated GPU-hours of training and evaluation; GB of the weights kept, and of the"
    yield "states of a run while it is trained:"
    yield from _aligned([HEAD, *map(_row, costs), _total(costs)])
    yield from _disk(resolved, costs)
    yield from _chain(resolved)
    yield from _remarks(resolved, costs)


def _row(costs: ModelCosts) -> list[str]:
    return [
        costs.model,
        str(costs.runs),
        str(costs.gpus) if costs.runs else "-",
        _number(costs.longest_run_hours, 1) if costs.runs else "-",
        _number(costs.training_gpu_hours),
        _number(costs.evaluation_gpu_hours),
        _number(costs.weights_gb),
        _number(costs.states_gb) if costs.runs else "-",
    ]


def _total(costs: Sequence[ModelCosts]) -> list[str]:
    def total(name: str) -> str:
        known = [value for cost in costs if (value := getattr(cost, name)) is not None]
        return _number(sum(known) if known else None)

    hours = [total("training_gpu_hours"), total("evaluation_gpu_hours")]
    return ["total", str(sum(cost.runs for cost in costs)), "", "", *hours, total("weights_gb"), ""]


def _disk(resolved: ResolvedStudy, costs: Sequence[ModelCosts]) -> Iterator[str]:
    weights = [cost.weights_gb for cost in costs if cost.weights_gb is not None]
    states = [(cost.states_gb, cost.runs) for cost in costs if cost.states_gb is not None]
    texts = generations_gb(resolved)
    if weights:
        one = max((gb for gb, _ in states), default=0.0)
        every = sum(gb * runs for gb, runs in states)
        kept = sum(weights) + texts
        yield (
            f"\nDisk: {_number(kept)} GB kept, of it {_number(texts)} GB of responses at most; and "
            f"while runs are trained\nup to {_number(one)} GB for each, {_number(kept + every)} GB "
            f"together if all are trained at once"
        )
    else:
        yield f"\nDisk: {_number(texts)} GB of responses at most; that of weights has no estimate"


def _chain(resolved: ResolvedStudy) -> Iterator[str]:
    chain = longest_chain(resolved)
    if chain is None:
        yield "Longest chain: no estimate"
    else:
        yield (
            f"Longest chain: {chain.hours:.1f} hours, without waiting for GPUs: {chain.run.name} "
            f"({chain.training_hours:.1f}),\nthen {chain.benchmark} at {chain.update} "
            f"({chain.evaluation_hours:.1f})"
        )


def _remarks(resolved: ResolvedStudy, costs: Sequence[ModelCosts]) -> Iterator[str]:
    for cost in costs:
        if (hours := cost.longest_run_hours) is not None and hours > cost.limit_hours:
            yield (
                f"{cost.model}: a run of {hours:.1f} hours is longer than resources.minutes allows "
                f"({cost.limit_hours:.1f} hours); raise it"
            )
    for name in resolved.study.benchmarks:
        if responses(resolved, name) is None:
            yield f"{name}: has no estimate, since its file does not say the number of rows"


def _number(value: float | None, digits: int = 0) -> str:
    return "no estimate" if value is None else f"{value:,.{digits}f}"


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the rows of a table, the first column to the left and all others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
        yield "  ".join([first.ljust(widths[0]), *cells]).rstrip()


if __name__ == "__main__":
    main()
