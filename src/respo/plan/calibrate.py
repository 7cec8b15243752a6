"""What a run has cost: the estimate for its model's file, measured."""

import csv
from collections.abc import Iterator
from pathlib import Path

from respo.cli import UserError
from respo.config import load_model
from respo.config.schema import Estimate
from respo.config.yaml import canonical
from respo.parquet import parquet_rows, read_parquet

GB = 1e9


def calibrated(run: Path, config: Path) -> str:
    """Return the estimate of a run's model as YAML; what the run does not tell is as before.

    Args:
        run: a run folder, `results/STUDY/MODEL/METHOD/N.../seed...`.
        config: the folder with models/.

    Raises:
        UserError: it is no run folder, or a file of it is damaged.
    """
    run = run.absolute()
    if not (run / "config.yaml").is_file() or len(run.parts) < 6:
        raise UserError(f"{run}: is no run folder, results/STUDY/MODEL/METHOD/N.../seed...")
    study, model = run.parents[3], run.parts[-4]
    file = config / "models" / f"{model}.yaml"
    before = load_model(file).resources.estimate
    measured = {
        "weights_gb": weights_gb(run),
        "responses_per_second": responses_per_second(run, study),
        "update_seconds": update_seconds(run),
        "state_gb": state_gb(run),
    }
    if not any(measured.values()):
        raise UserError(f"{run}: nothing can be measured; train the run and evaluate it first")
    lines = [f"  # For {file}: measured on {run.relative_to(study.parent)}.", "  estimate:"]
    for key in Estimate.model_fields:
        if (value := measured[key]) is not None:
            lines.append("    " + canonical({key: float(f"{value:.3g}")}).strip())
        elif (known := getattr(before, key, None)) is not None:
            lines.append(f"    {key}: {known}  # not measured: as before")
        else:
            lines.append(f"    # {key}: not measured; fill it in")
    return "\n".join(lines)


def update_seconds(run: Path) -> float | None:
    """Return the mean wall time of an update, without those of the first rollout batch.

    In the first everything is compiled and allocated. None if the run has not ended.
    """
    path = run / "metrics.parquet"
    if not path.is_file():
        return None
    rows = read_parquet(path, ["rollout_batch", "seconds"]).to_pylist()
    warm = [row for row in rows if row["rollout_batch"] > rows[0]["rollout_batch"]] or rows
    return sum(row["seconds"] for row in warm) / len(warm) if warm else None


def responses_per_second(run: Path, study: Path) -> float | None:
    """Return the responses of evaluation jobs by their wall time, the start of vLLM included."""
    jobs = list(_evaluations(run, study))
    seconds = sum(time for _, time in jobs)
    return sum(number for number, _ in jobs) / seconds if seconds else None


def _evaluations(run: Path, study: Path) -> Iterator[tuple[int, float]]:
    """Yield the responses and the seconds, as snakemake took them, of the jobs that sampled."""
    for path in sorted(run.glob("eval/*/*/generations.parquet")):
        update, benchmark = path.parts[-3:-1]
        times = study / "benchmarks" / "eval" / run.relative_to(study) / update
        table = times / f"{benchmark}.generate.tsv"
        if table.is_file():
            with table.open(newline="") as file:
                seconds = [float(row["s"]) for row in csv.DictReader(file, delimiter="\t")]
            yield parquet_rows(path), sum(seconds)


def weights_gb(run: Path) -> float | None:
    """Return the size of a checkpoint for evaluation; None if there is none."""
    return _largest(run / "checkpoints", "[0-9]*")


def state_gb(run: Path) -> float | None:
    """Return the size of a state that verl continues from; None unless the run is being trained."""
    return _largest(run / "verl" / "checkpoints", "global_step_*")


def _largest(folder: Path, pattern: str) -> float | None:
    sizes = [
        sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
        for path in folder.glob(pattern)
    ]
    return max(sizes) / GB if any(sizes) else None
