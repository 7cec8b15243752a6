"""Training curves of every run, thinned out to what a screen can show.

What starts anew with every rollout batch is averaged over whole ones, as in the figures.
"""

from typing import Any

import numpy as np

from respo.config import Run
from respo.parquet import read_parquet
from respo.reporting.curves import batch_means, points, window
from respo.reporting.page.make import below
from respo.reporting.results import Results
from respo.statistics import accuracy_of_score

POINTS = 256  # of a curve, at most
DIGITS = 4  # significant ones
# Columns of the metrics: label, and what it is. In the order in which the page offers them.
METRICS = {
    "score": ("training score", "(mean reward + 1) / 2, length penalty included"),
    "log_ratio_mean": ("mean log W", "log-ratio of the whole response, mean over responses"),
    "log_ratio_q05": ("log W, 5% quantile", "over the responses of a mini-batch"),
    "log_ratio_q50": ("log W, median", "over the responses of a mini-batch"),
    "log_ratio_q95": ("log W, 95% quantile", "over the responses of a mini-batch"),
    "entropy": ("entropy", "nat per token"),
    "approx_kl": ("approximate KL", "old minus new log-probability, nat per token"),
    "reference_kl": ("KL to the initial weights", "nat per token; only with a KL loss"),
    "grad_norm": ("gradient norm", "before clipping"),
    "response_length": ("response length", "tokens"),
    "capped_share": ("capped responses", "share that reached the length limit"),
    "repetition": ("repetition", "share of repeated 20-grams"),
    "clip_fraction_pos": ("clipped, A > 0", "share of tokens with coefficient 0"),
    "clip_fraction_neg": ("clipped, A < 0", "share of tokens with coefficient 0"),
    "coefficient_mean_pos": ("coefficient, A > 0", "mean over tokens"),
    "coefficient_mean_neg": ("coefficient, A < 0", "mean over tokens"),
    "ratio_mean_pos": ("ratio, A > 0", "mean over responses of the mean token ratio"),
    "ratio_mean_neg": ("ratio, A < 0", "mean over responses of the mean token ratio"),
    "zero_advantage_groups": ("groups without advantage", "share whose rewards are all equal"),
    "dropped_groups": ("dropped groups", "share left out; only with dynamic sampling"),
    "tokens_per_second": ("tokens per second", "learned from, by wall time"),
    "seconds": ("seconds per update", "wall time, with its share of sampling"),
}
# Those that start anew with every rollout batch: only means of whole ones are smooth.
BY_BATCH = {
    *("log_ratio_mean", "log_ratio_q05", "log_ratio_q50", "log_ratio_q95", "approx_kl"),
    *("clip_fraction_pos", "clip_fraction_neg", "coefficient_mean_pos", "coefficient_mean_neg"),
    *("ratio_mean_pos", "ratio_mean_neg"),
}
# Of a run, that a running mean may span.
SHARES = {"1/32 of a run": 1 / 32, "1/16 of a run": 1 / 16, "1/8 of a run": 1 / 8}


def collect(results: Results) -> dict[str, Any]:
    """Read the metrics of all runs.

    Returns:
        `metrics`, those that any run has, and whether they are `by_batch`; `shares` that a running
        mean may span, and their names; `runs`, each with `updates` and its `values` by metric, null
        where there is none; `width`: updates that a point is the mean of, and `spans`: points of a
        running mean by share, both first of what stands by update, then of what is by batch. A run
        that is missing has only a `target`.
    """
    runs = [_run(results, run) for run in results.study.runs()]
    there = {name for run in runs for name in run.get("values", ())}
    return {
        "metrics": {
            name: {"label": label, "about": about, "by_batch": name in BY_BATCH}
            for name, (label, about) in METRICS.items()
            if name in there
        },
        "shares": [[f"{share:g}", name] for name, share in SHARES.items()],
        "runs": runs,
    }


def _run(results: Results, run: Run) -> dict[str, Any]:
    path = results.metrics_path(run)
    known = {
        "model": run.model,
        "method": run.method,
        "N": run.staleness,
        "seed": run.seed,
        "target": below(results, path),
    }
    if not path.is_file():
        return known
    names = [name for name in read_parquet(path).column_names if name in METRICS]
    metrics = results.metrics(run, *names)
    assert metrics is not None
    if "score" in metrics:
        metrics["score"] = accuracy_of_score(metrics["score"])
    updates = results.study.training(run).updates
    batch = run.staleness
    width, batches = (-(-length // POINTS) for length in (updates, -(-updates // batch)))
    values = {
        name: thinned(batch_means(values_U, batch), batches)
        if name in BY_BATCH
        else thinned(values_U, width)
        for name, values_U in metrics.items()
    }
    # What no run of the study has is no curve.
    values = {name: line for name, line in values.items() if any(v is not None for v in line)}
    widths = [width, batch * batches]
    spans = {
        f"{share:g}": [points(window(updates, share), updates_each) for updates_each in widths]
        for share in SHARES.values()
    }
    return {**known, "updates": updates, "width": widths, "spans": spans, "values": values}


def thinned(values: np.ndarray, width: int) -> list[float | None]:
    """Return the mean of every `width` values, without NaN; None where there is nothing else.

    Args:
        values: one per update or rollout batch.
        width: the last mean may be of fewer.
    """
    missing = -len(values) % width
    padded = np.pad(values, (0, missing), constant_values=np.nan).reshape(-1, width)
    there = np.isfinite(padded)
    count = there.sum(axis=1)
    mean = np.where(there, padded, 0.0).sum(axis=1) / np.maximum(count, 1)
    return [
        float(f"{value:.{DIGITS}g}") if n else None for value, n in zip(mean, count, strict=True)
    ]
