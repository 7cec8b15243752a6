"""Every number here is worked out by hand from the study of conftest.py."""

from pathlib import Path

import pytest
import yaml

from respo.config import Run, load_study
from respo.plan.costs import (
    CELLS_PER_JOB,
    generations_gb,
    jobs,
    longest_chain,
    model_costs,
    slurm_jobs,
)

CONFIG = Path(__file__).parents[2] / "config"


def test_jobs(small):
    # 5 runs; (4 evaluated runs x 2 checkpoints + 1 baseline) x 2 benchmarks = 18 cells; rows of one
    # training set and two benchmarks; two models, one of them a baseline.
    assert jobs(small()) == {
        "configuration files": 1 + 3 + 2 + 5,
        "prompts": 3,
        "initial weights, baselines": 3,
        "training": 5,
        "evaluation: sampling": 18,
        "evaluation: scoring": 18,
        "evaluation: cells": 18,
        "tables, figures, report": 1 + 2 + 2,  # and the page
    }


def test_jobs_of_slurm(small):
    # 5 runs, 18 samplings, two groups of up to 12 cells, 5 tables and the like.
    assert slurm_jobs(small()) == 5 + 18 + 2 + 5
    profile = yaml.safe_load((CONFIG.parent / "profiles/slurm/config.yaml").read_text())
    assert profile["group-components"] == {"cells": CELLS_PER_JOB}


def test_costs(small):
    big, released = model_costs(small())
    assert (big.model, big.runs, big.gpus) == ("big", 5, 8)
    # 1,024 updates of 36 seconds; the extra run has 512.
    assert big.longest_run_hours == pytest.approx(10.24)
    assert big.training_gpu_hours == pytest.approx((4 + 0.5) * 10.24 * 8)
    # 30 x 48 + 500 x 4 responses, 2 a second on two GPUs, for four runs at two checkpoints.
    assert big.evaluation_gpu_hours == pytest.approx(8 * 3440 / 2 / 3600 * 2)
    # Four checkpoints of four runs, two of the extra run, and the initial weights.
    assert big.weights_gb == (4 * 4 + 2 + 1) * 4.0
    # One is kept, and one is being written.
    assert big.states_gb == 2 * 10.0
    assert big.limit_hours == pytest.approx(700 / 60)
    assert (released.runs, released.training_gpu_hours, released.states_gb) == (0, 0.0, 0.0)
    assert released.longest_run_hours is None
    assert released.evaluation_gpu_hours == pytest.approx(3440 / 3600)
    assert released.weights_gb == 3.0


def test_more_states_are_kept(small):
    assert model_costs(small(big={"resources__keep_last": 3}))[0].states_gb == 4 * 10.0


def test_generations(small):
    # 16,384 tokens each, four bytes a token; eight evaluations of runs and one of the baseline.
    assert generations_gb(small()) == pytest.approx(9 * 3440 * 16384 * 4e-9)


def test_the_longest_chain(small):
    chain = longest_chain(small())
    assert chain.run == Run("big", "grpo", 8, 1)
    assert (chain.update, chain.benchmark) == (1024, "math500")
    assert chain.training_hours == pytest.approx(10.24)
    assert chain.evaluation_hours == pytest.approx(2000 / 2 / 3600)
    assert chain.hours == pytest.approx(10.24 + 2000 / 2 / 3600)


def test_without_an_estimate(small):
    resolved = small(big={"resources__estimate": None})
    big, released = model_costs(resolved)
    assert big.longest_run_hours is big.training_gpu_hours is big.evaluation_gpu_hours is None
    assert big.weights_gb is big.states_gb is None
    assert released.evaluation_gpu_hours is not None
    # What is left is the baseline.
    assert longest_chain(resolved).run.is_baseline


def test_a_benchmark_of_unknown_size(small):
    big, _ = model_costs(small(math500={"rows": None}))
    assert big.evaluation_gpu_hours is None
    assert big.training_gpu_hours is not None


def test_local_models_have_no_gpus():
    (tiny,) = model_costs(load_study(CONFIG, "tiny"))
    assert (tiny.gpus, tiny.training_gpu_hours, tiny.weights_gb) == (0, None, None)
    assert longest_chain(load_study(CONFIG, "tiny")) is None


# The papers' studies: 31 runs with 24 + 4 + 1 evaluated at four checkpoints on six benchmarks ...
@pytest.mark.parametrize(
    ("name", "runs", "cells"),
    [
        ("respo", 31, 29 * 4 * 6),
        ("aspo", 11, (11 + 6) * 9),
        ("aspo-code", 4, (4 + 4) * 2),
        ("maspo", 31, 31 * 6),
    ],
)
def test_the_studies_of_the_papers(name, runs, cells):
    resolved = load_study(CONFIG, name)
    numbers = jobs(resolved)
    assert (numbers["training"], numbers["evaluation: cells"]) == (runs, cells)
    assert all(cost.weights_gb for cost in model_costs(resolved))
    assert longest_chain(resolved).hours > 24
