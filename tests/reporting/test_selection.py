"""Which runs are the rows of the papers' tables: counted by hand in the papers."""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from respo.config import load_study
from respo.reporting import selection

CONFIG = Path(__file__).parents[2] / "config"
SMALL, MIDDLE, LARGE = (f"r1-distill-qwen-{size}-8k" for size in ("1.5b", "7b", "14b"))


@cache
def study(name):
    return load_study(CONFIG, name)


def methods(runs):
    return {(run.model, run.staleness): [] for run in runs} | {
        key: [run.method for run in runs if (run.model, run.staleness) == key]
        for key in {(run.model, run.staleness) for run in runs}
    }


def test_tables_of_maspo():
    own = ["grpo", "clip-higher-maspo", "dac", "entropy-adv", "bapo", "sapo", "maspo"]
    found = methods(selection.grid(study("maspo")))
    assert {key: sorted(value) for key, value in found.items()} == {
        (SMALL, 16): sorted(own), (MIDDLE, 16): sorted(own),
    }  # fmt: skip
    assert methods(selection.beside_grid(study("maspo"))) == {
        (LARGE, 16): ["grpo", "maspo-a0.5-b0.03"]
    }


def test_sweeps_of_maspo():
    runs = selection.sweeps(study("maspo"))
    objectives = Counter((r.model, study("maspo").methods[r.method].objective) for r in runs)
    # Table 5: 8 sets of MASPO. Clip Higher is GRPO with 0.2, 0.265 and 0.28; on the small model
    # also with an entropy bonus, which is no parameter of the objective, and an ablation.
    assert objectives == {
        (MIDDLE, "maspo"): 8, (MIDDLE, "grpo"): 3, (SMALL, "maspo"): 3, (SMALL, "grpo"): 3,
    }  # fmt: skip
    # Those of one objective lie together.
    assert [r.model for r in runs] == [SMALL] * 6 + [MIDDLE] * 11


def test_ablations_of_aspo():
    found = methods(selection.ablations(study("aspo")))
    assert {key: set(value) for key, value in found.items()} == {
        ("qwen3-4b", 4): {"grpo", "aspo", "grpo-no-is", "grpo-pos-mean-is", "aspo-no-dual-clip"}
    }


def test_main_rows_have_models_as_they_come():
    runs = selection.main(study("aspo"))
    assert sum(run.is_baseline for run in runs) == 6
    assert {run.method for run in runs if not run.is_baseline} == {"grpo", "aspo"}


def test_diagnostic_runs():
    runs = selection.diagnostic(study("respo"))
    assert [(r.model, r.method, r.staleness) for r in runs] == [
        ("qwen3-1.7b-base-16k", "vespo", 32), ("qwen3-1.7b-base-16k", "respo", 32),
    ]  # fmt: skip
    # Without such runs, those of the largest N.
    assert {run.staleness for run in selection.diagnostic(study("tiny"))} == {32}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("respo", [("respo", 16), ("respo-r3", 16)]),
        ("tiny-moe", [("respo", 32), ("respo-r3", 32)]),
        ("tiny", []),
    ],
)
def test_runs_with_routing_replay_and_their_match(name, expected):
    assert [(r.method, r.staleness) for r in selection.replays(study(name))] == expected


@pytest.mark.parametrize(
    ("methods_", "reference"), [(["vespo", "grpo"], "grpo"), (["vespo", "respo"], "vespo")]
)
def test_the_reference(folder, methods_, reference):
    assert selection.reference(folder(methods=methods_).study) == reference


def test_differing_parameters():
    known = study("maspo").methods
    names = ["maspo", "maspo-a0.5-b0.03", "maspo-no-positive-risk"]
    assert selection.differing([known[name] for name in names]) == ["alpha", "beta_high"]
