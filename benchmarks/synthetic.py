"""Made-up results of a whole study: for trying and timing tables and figures without training.

    OMP_NUM_THREADS=1 .venv/bin/python -m benchmarks.synthetic --study respo --out FOLDER

Writes what the reporting reads of a results folder, in full size: of each run its configuration,
`train.json`, `metrics.parquet` and `branches.parquet`; of each evaluated checkpoint a cell per
benchmark; of the last one `scores.parquet` too. The numbers follow simple formulas and a seed.
They look like those of a training, but say nothing about any objective: each file says in its
provenance that it is synthetic.
"""

import argparse
import time
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import pyarrow as pa
import torch

from respo.config import ResolvedStudy, Run, load_study
from respo.evaluation.score import SCHEMA
from respo.files import sha256_of, write_json, write_text
from respo.objectives import LOG_W_EDGES, SIGNS, code_hash, kernel
from respo.parquet import write_parquet
from respo.training.local.metrics import QUANTILES, branches_table, metrics_table

CONFIG = Path(__file__).parents[1] / "config"
SYNTHETIC = {"synthetic": True}
# Median length of a response, and how hard the problems are; other benchmarks are like the last.
LENGTH: dict[str, float] = {
    "aime24": 5000,
    "aime25": 5000,
    "amc23": 3000,
    "math500": 1200,
    "": 2000,
}
DIFFICULTY = {"aime24": 1.5, "aime25": 2.0, "amc23": 0.0, "math500": -1.2, "": 0.5}
ROWS = 100  # of a benchmark whose file gives no number
# What a method gains in log odds, and how fast its responses grow.
GAIN = {"grpo": 0.0, "gspo": 0.05, "vespo": 0.25, "respo": 0.5, "aspo": 0.4, "maspo": 0.4}
GROWTH = {"grpo": 0.3, "gspo": 0.25, "vespo": 0.5, "respo": 0.9, "": 0.4}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.synthetic", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--study", default="respo", help="a file of config/studies")
    parser.add_argument("--out", type=Path, required=True, help="folder; STUDY is made in it")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.perf_counter()
    folder = write_study(options.out, options.study, options.seed)
    print(f"{folder}: {time.perf_counter() - start:.1f} s")


def write_study(out: Path, name: str, seed: int = 0) -> Path:
    """Write the results folder of a study of config/studies below `out`, and return it."""
    study = load_study(CONFIG, name)
    for path, text in study.config_texts(out / name, code_hash).items():
        write_text(Path(path), text())
    for run in study.runs():
        write_training(study, run, out / name, generator(seed, run.name))
    for run in study.evaluated():
        for update in study.checkpoints(run):
            for benchmark in study.benchmarks:
                write_cell(study, run, update, benchmark, out / name, seed)
    return out / name


def generator(seed: int, *names: str) -> np.random.Generator:
    return np.random.default_rng([seed, *(crc32(name.encode()) for name in names)])


class Course(NamedTuple):
    """A training: what its metrics and responses follow."""

    progress_U: np.ndarray  # 0 to 1
    age_U: np.ndarray  # updates since sampling, by N
    odds_U: np.ndarray  # log odds of a correct response
    tokens_U: np.ndarray  # mean length


def course(study: ResolvedStudy, run: Run, updates_U: np.ndarray) -> Course:
    model = study.models[run.model]
    mixture = "a3b" in run.model or "moe" in run.model
    progress_U = 1 - np.exp(-4 * updates_U / study.study.updates)
    method = run.method.split("-")[0]
    stale = 0.02 * run.staleness * (method in ("grpo", "gspo")) + 0.02 * (run.seed % 3)
    odds_U = (0.5 if mixture else -2.3) + (1 + GAIN.get(method, 0.1) - stale) * progress_U
    limit = model.max_response_tokens
    tokens_U = limit * (0.05 + 0.07 * like(GROWTH, method) * progress_U)
    age_U = (updates_U - 1) % run.staleness / run.staleness if run.staleness else 0 * updates_U
    return Course(progress_U, age_U, odds_U, tokens_U)


def write_training(study: ResolvedStudy, run: Run, folder: Path, rng: np.random.Generator) -> None:
    """Write configuration-bound metrics, branches and `train.json`."""
    training, path = study.training(run), run.folder(folder)
    updates = training.updates
    made_from = SYNTHETIC | {"config_sha256": sha256_of(path / "config.yaml")}
    updates_U = np.arange(1, updates + 1)
    at = course(study, run, updates_U)
    shape = (updates, training.mini_batch * training.rollouts_per_prompt)
    spread_UB = rng.standard_normal(shape)
    tokens_UB = at.tokens_U[:, None] * np.exp(0.6 * rng.standard_normal(shape) - 0.18)
    limit = study.models[run.model].max_response_tokens
    tokens_UB = np.clip(tokens_UB, 10, limit).astype(np.int64)
    # The longer a response and the staler its policy, the further it drifts.
    drift_UB = at.age_U[:, None] * np.sqrt(tokens_UB / 1000) * run.staleness / 32
    log_w_UB = drift_UB * (0.8 * spread_UB - 0.3)
    sign_UB = np.where(rng.random(shape) < sigmoid(at.odds_U)[:, None], 1, -1)
    # In the other groups all responses have the same reward.
    mixed = rng.random((updates, training.mini_batch)) < 0.6
    sign_UB *= np.repeat(mixed, training.rollouts_per_prompt, axis=1)
    coefficient = {sign: coefficients(study, run, log_w_UB, sign) for sign in (1, -1)}

    def noisy(values_U: np.ndarray, share: float = 0.05) -> np.ndarray:
        return values_U * np.exp(share * rng.standard_normal(updates))

    drift_U, growth = at.age_U * run.staleness / 32, like(GROWTH, run.method.split("-")[0])
    accuracy_U = sigmoid(at.odds_U + 0.15 * rng.standard_normal(updates))
    ratio_U = 4e-4 * (1 + at.progress_U) * drift_U
    spikes_U = np.where(rng.random(updates) < 0.01 * ("no-dual" in run.method), 20.0, 1.0)
    columns: dict[str, np.ndarray] = {
        "update": updates_U,
        "rollout_batch": (updates_U - 1) // run.staleness,
        "score": 2 * accuracy_U - 1,
        "log_ratio_mean": log_w_UB.mean(axis=1),
        **{
            f"log_ratio_q{percent:02d}": quantile_U
            for percent, quantile_U in zip(
                QUANTILES, np.percentile(log_w_UB, QUANTILES, axis=1), strict=True
            )
        },
        "clip_fraction_pos": noisy(0.004 * drift_U),
        "clip_fraction_neg": noisy(0.002 * drift_U),
        "coefficient_mean_pos": noisy(1 + 0.1 * drift_U, 0.02),
        "coefficient_mean_neg": noisy(1 - 0.1 * drift_U, 0.02),
        "ratio_mean_pos": 1 + noisy(ratio_U, 0.3),
        "ratio_mean_neg": 1 - noisy(ratio_U / 2, 0.3),
        "clamped": np.zeros(updates),
        "entropy": noisy(0.1 + 0.1 * growth + 0.45 * np.exp(-3 * at.progress_U)),
        "approx_kl": noisy(1e-3 * (0.5 + growth) * drift_U * (1 + at.progress_U), 0.2),
        "reference_kl": noisy(0.1 * at.progress_U)
        if training.kl_coefficient
        else np.full(updates, np.nan),
        "grad_norm": noisy(0.2 + 0.1 * drift_U, 0.15) * spikes_U,
        "response_length": tokens_UB.mean(axis=1),
        "capped_share": (tokens_UB == limit).mean(axis=1),
        "repetition": noisy(0.02 + 0.05 * at.progress_U),
        "tokens_per_second": noisy(np.full(updates, 2e4)),
        "zero_advantage_groups": (sign_UB == 0).mean(axis=1),
        "dropped_groups": np.full(updates, np.nan),
        "seconds": noisy(np.full(updates, 30.0)),
    }
    lists = {name: values.tolist() for name, values in columns.items()}
    rows = [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    write_parquet(path / "metrics.parquet", metrics_table(rows), made_from)
    sums_USKN = branch_sums(sign_UB, log_w_UB, tokens_UB, coefficient)
    branches = branches_table(rows, torch.from_numpy(sums_USKN))
    write_parquet(path / "branches.parquet", branches, made_from)
    train = {
        "update": updates,
        **made_from,
        "checkpoints": {str(update): "synthetic" for update in training.checkpoints},
        "tokens_generated": int(tokens_UB.sum()),
        "seconds": 30.0 * updates,
        "restarts": 0,
    }
    write_json(path / "train.json", train)


def branch_sums(
    sign_UB: np.ndarray,
    log_w_UB: np.ndarray,
    tokens_UB: np.ndarray,
    coefficient: dict[int, np.ndarray],
) -> np.ndarray:
    """Return responses, coefficient mass and tokens by update, sign and bin of log W."""
    updates, bins = len(sign_UB), len(LOG_W_EDGES) - 1
    sums_USKN = np.empty((updates, 3, len(SIGNS), bins))
    place_UB = np.searchsorted(LOG_W_EDGES[1:-1], log_w_UB) + np.arange(updates)[:, None] * bins
    for index, sign in enumerate((1, -1)):
        chosen = sign_UB == sign
        for kind, values_UB in enumerate((np.ones(chosen.shape), coefficient[sign], tokens_UB)):
            sums = np.bincount(place_UB[chosen], values_UB[chosen], minlength=updates * bins)
            sums_USKN[:, kind, index] = sums.reshape(updates, bins)
    return sums_USKN


def coefficients(study: ResolvedStudy, run: Run, log_w: np.ndarray, sign: int) -> np.ndarray:
    """Return the coefficients of responses, taken for one token each."""
    method = study.methods[run.method]
    grid = np.linspace(-10, 10, 4001)
    parameters: dict[str, Any] = dict(method.parameters)
    c = kernel(method.objective, torch.from_numpy(grid), sign, **parameters).numpy()
    return np.interp(log_w, grid, np.nan_to_num(c))


def write_cell(
    study: ResolvedStudy, run: Run, update: int, benchmark: str, folder: Path, seed: int
) -> None:
    """Write a cell and, of the last checkpoint, its scores."""
    rng = generator(seed, run.name, benchmark, str(update))
    at = course(study, run, np.array([update]))
    problems, samples = study.benchmarks[benchmark].rows or ROWS, study.samples(benchmark)
    limit = study.sampling(benchmark, run.model).max_response_tokens
    # The same problems are hard for all.
    hard_P = generator(seed, benchmark).normal(like(DIFFICULTY, benchmark), 1.5, problems)
    usual = 0.08 * study.models[run.model].max_response_tokens
    scale = like(LENGTH, benchmark) * at.tokens_U[0] / usual
    longer_PS = 0.8 * rng.standard_normal((problems, samples)) + 0.15 * hard_P[:, None]
    tokens_PS = np.clip(scale * np.exp(longer_PS), 10, limit * 1.0).astype(np.int64)
    truncated_PS = tokens_PS == limit
    odds_PS = 1.2 + at.odds_U[0] - hard_P[:, None] - longer_PS - 2 * truncated_PS
    correct_PS = rng.random((problems, samples)) < sigmoid(odds_PS)
    ids = [f"{benchmark}-{index:04d}" for index in range(problems)]
    path = run.cell(folder, update, benchmark)
    unparsed_PS = truncated_PS & ~correct_PS
    if update == study.checkpoints(run)[-1]:
        boxed_PS = np.where(correct_PS, 0, rng.integers(1, 9, correct_PS.shape))
        boxed = pa.array(boxed_PS.ravel().astype(str), mask=unparsed_PS.ravel())
        columns = {
            "problem_id": pa.array(ids).take(pa.array(np.repeat(np.arange(problems), samples))),
            "sample": np.tile(np.arange(samples), problems),
            "correct": correct_PS.ravel(),
            "extracted": boxed,
            "boxed": boxed,
            "status": np.where(unparsed_PS, "unparsed", "ok").ravel(),
            "response_tokens": tokens_PS.ravel(),
            "truncated": truncated_PS.ravel(),
            "answer": pa.array(["0"] * correct_PS.size),
        }
        table = pa.table([pa.array(columns[name]) for name in SCHEMA.names], SCHEMA.names)
        write_parquet(path.with_name("scores.parquet"), table.cast(SCHEMA), SYNTHETIC)
    mean_P = correct_PS.mean(axis=1)
    cell = {
        "study": study.name,
        "model": run.model,
        "method": run.method,
        "staleness": run.staleness,
        "seed": run.seed,
        "update": update,
        "benchmark": benchmark,
        "samples": samples,
        "pass_at_1": float(mean_P.mean()),
        "standard_error": float(mean_P.std() / np.sqrt(problems)),
        "responses": correct_PS.size,
        "unparsed": int(unparsed_PS.sum()),
        "timed_out": 0,
        "failed": 0,
        "truncated": int(truncated_PS.sum()),
        "mean_response_tokens": float(tokens_PS.mean()),
        # Wrong answers differ from each other: the vote finds what a third of the samples say.
        "majority": float((mean_P > 1 / 3).mean()),
        "made_from": SYNTHETIC | {"verifier": study.benchmarks[benchmark].verifier},
        "problems": [
            {"id": id_, "correct": int(c), "samples": samples}
            for id_, c in zip(ids, correct_PS.sum(axis=1), strict=True)
        ],
    }
    write_json(path, cell)


def like(values: dict[str, float], name: str) -> float:
    return values.get(name, values[""])


def sigmoid(odds: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-odds))


if __name__ == "__main__":
    main()
