"""The studies of the three papers run what the papers say."""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from respo.config import Run, load_model, load_study
from respo.config.schema import VerlModel, VllmModel

CONFIG = Path(__file__).parents[2] / "config"
PAPERS = ("respo", "aspo", "aspo-code", "maspo")
CHOICES = ("arc_challenge", "gpqa_diamond", "mmlu_pro")
MATHS = {"aime24", "aime25", "amc23", "math500", "minerva_math", "olympiadbench"}
DENSE, MIXTURE, LONG = "qwen3-1.7b-base", "qwen3-30b-a3b-base", "qwen3-1.7b-base-16k"
R1 = {size: f"r1-distill-qwen-{size}-8k" for size in ("1.5b", "7b", "14b")}


@cache
def resolved(name):
    return load_study(CONFIG, name)


def test_every_study_of_the_project_loads():
    for path in CONFIG.glob("studies/*.yaml"):
        study = resolved(path.stem)
        for run in study.runs():
            study.run_config(run, "")


# By hand: model -> its runs.
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # 4 methods x 3 N, and 2 more seeds of ReSPO; on the mixture also R3; 2 diagnostic runs.
        ("respo", {DENSE: 12 + 2, MIXTURE: 12 + 2 + 1, LONG: 2}),
        # GRPO and ASPO; on one also without IS, with the positive mean, without dual clip.
        (
            "aspo",
            {"qwen3-4b": 5, "qwen3-8b": 2, "qwen3-30b-a3b": 2, "r1-distill-qwen-1.5b-32k": 2},
        ),
        ("aspo-code", {"qwen3-4b": 2, "r1-distill-qwen-1.5b-32k": 2}),
        # 7 methods and Clip Higher 0.28; 3 ablations and 3 further baselines, or the 7 others of
        # the sweep; GRPO and MASPO.
        ("maspo", {R1["1.5b"]: 8 + 3 + 3, R1["7b"]: 8 + 7, R1["14b"]: 2}),
    ],
)
def test_the_runs(name, expected):
    assert Counter(run.model for run in resolved(name).runs()) == expected


def test_the_runs_of_respo():
    study = resolved("respo")
    runs = study.runs()
    assert len(runs) == 31
    grid = [run for run in runs if run.seed == 1 and run.model != LONG and run.method != "respo-r3"]
    assert Counter((run.model, run.method, run.staleness) for run in grid) == {
        (model, method, n): 1
        for model in (DENSE, MIXTURE)
        for method in ("grpo", "gspo", "vespo", "respo")
        for n in (8, 16, 32)
    }
    assert {run for run in runs if run.seed != 1} == {
        Run(model, "respo", 32, seed) for model in (DENSE, MIXTURE) for seed in (2, 3)
    }
    assert [run for run in runs if run.method == "respo-r3"] == [Run(MIXTURE, "respo-r3", 16, 1)]
    diagnostic = [run for run in runs if run.model == LONG]
    assert diagnostic == [Run(LONG, "vespo", 32, 1), Run(LONG, "respo", 32, 1)]
    # The first 16 rollout batches, trained and not evaluated.
    assert {study.training(run).updates // run.staleness for run in diagnostic} == {16}
    assert set(runs) - set(study.evaluated()) == set(diagnostic)


def test_the_runs_of_aspo():
    study = resolved("aspo")
    assert {run.staleness for run in study.runs()} == {64 // 16}
    assert {run.method for run in study.runs() if run.model == "qwen3-4b"} == {
        "grpo",
        "aspo",
        "grpo-no-is",
        "grpo-pos-mean-is",
        "aspo-no-dual-clip",
    }
    # Table 1 has each model before training, and two released ones.
    baselines = {run.model for run in study.evaluated() if run.is_baseline}
    assert baselines == {run.model for run in study.runs()} | {"deepscaler-1.5b", "nemotron-1.5b"}
    data = {run.model: study.train_data(run) for run in study.runs()}
    assert data.pop("r1-distill-qwen-1.5b-32k") == "aspo-math"
    assert set(data.values()) == {"dapo-math-17k"}


def test_the_runs_of_aspo_code():
    study = resolved("aspo-code")
    assert {(run.method, run.staleness) for run in study.runs()} == {("grpo", 4), ("aspo", 4)}
    assert {run.model for run in study.evaluated() if run.is_baseline} == {
        "r1-distill-qwen-1.5b-32k",
        "deepcoder-1.5b",
        "nemotron-1.5b",
        "qwen3-4b",
    }
    # Section 7.1: the windows, and how responses are sampled.
    windows = [(b.start_date, b.end_date) for b in study.benchmarks.values()]
    assert windows == [("2024-08-01", "2025-02-01"), ("2025-02-01", "2025-05-01")]
    assert {study.sampling(name, model) for name in study.benchmarks for model in study.models} == {
        (0.8, 1.0, 32768)
    }


def test_the_runs_of_maspo():
    runs = resolved("maspo").runs()
    assert {run.staleness for run in runs} == {512 // 32}
    methods = {
        size: {run.method for run in runs if run.model == model} for size, model in R1.items()
    }
    table_1 = {"grpo", "clip-higher-maspo", "dac", "entropy-adv", "bapo", "sapo", "maspo"}
    assert table_1 < methods["1.5b"] & methods["7b"]
    assert methods["14b"] == {"grpo", "maspo-a0.5-b0.03"}
    # Table 5: eight pairs of alpha and beta, on the model of 7B.
    known = resolved("maspo").methods
    sweep = [known[name].parameters for name in methods["7b"] if known[name].objective == "maspo"]
    assert {(p["alpha"], p["beta_low"]) for p in sweep if p["beta_low"] == p["beta_high"]} == {
        *((0.1, 0.03), (0.3, 0.0), (0.3, 0.03), (0.3, 0.1)),
        *((0.5, 0.0), (0.5, 0.03), (0.5, 0.1), (0.8, 0.03)),
    }
    assert len(sweep) == 8
    # Appendices D.1, D.2 and D.4.
    assert methods["1.5b"] - table_1 == {
        *("clip-higher", "adv-reweight", "adv-reweight-0.3", "entropy-reg"),
        *("sapo-unilateral", "maspo-a0.5-b0.03", "maspo-no-positive-risk"),
    }


@pytest.mark.parametrize(
    ("name", "mini_batch", "group", "reward", "kl", "rate", "samples"),
    [
        ("respo", 32, 8, "strict_box", 0.0, 1e-6, None),
        # Responses per problem: Appendix B.
        (
            "aspo",
            16,
            16,
            "math_verify",
            0.001,
            1e-6,
            {"aime24": 64, "aime25": 64, "amc23": 64}
            | {"math500": 4, "olympiadbench": 4, "minerva_math": 8}
            # One response to each question out of the domain (ours).
            | dict.fromkeys(CHOICES, 1),
        ),
        ("aspo-code", 16, 16, "code", 0.001, 1e-6, {"livecodebench-v5": 8, "livecodebench-v6": 16}),
        # Avg@32 and Pass@32 throughout.
        ("maspo", 32, 8, "math_verify", 0.0, 1e-6, dict.fromkeys(MATHS, 32)),
    ],
)
def test_the_settings(name, mini_batch, group, reward, kl, rate, samples):
    study = resolved(name)
    for run in study.runs():
        training = study.training(run)
        assert (training.mini_batch, training.rollouts_per_prompt) == (mini_batch, group)
        assert (training.reward, training.kl_coefficient) == (reward, kl)
        assert training.optimizer.learning_rate == rate
        assert training.temperature == 1.0
        sapo = run.method.startswith("sapo")
        assert training.loss_aggregation == ("seq-mean-token-mean" if sapo else "token-mean")
    samples = samples or dict.fromkeys(("aime24", "aime25", "amc23"), 16) | dict.fromkeys(
        ("math500", "olympiadbench", "minerva_math"), 4
    )
    assert {name: study.samples(name) for name in study.benchmarks} == samples


# 100 problems of AIME 2024, AIME 2025 and AMC, 272 of Minerva and 1,174 others; ReSPO's number is
# also printed in its Appendix E.2.
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("respo", 7384),
        # 1,172 questions of ARC, 198 of GPQA and 12,032 of MMLU-Pro.
        ("aspo", 100 * 64 + 272 * 8 + 1174 * 4 + 1172 + 198 + 12032),
        ("aspo-code", 279 * 8 + 131 * 16),
        ("maspo", 1546 * 32),
    ],
)
def test_the_responses_to_a_checkpoint(name, expected):
    study = resolved(name)
    assert expected == sum(b.rows * study.samples(name) for name, b in study.benchmarks.items())


def test_the_training_of_respo():
    study = resolved("respo")
    for run in study.evaluated():
        training = study.training(run)
        assert training.updates * training.mini_batch == 32_768
        assert training.checkpoints == [256, 512, 768, 1024] == study.checkpoints(run)
        # DAPO's length penalty on the mixture of experts alone.
        assert training.overlong_buffer == (4096 if run.model == MIXTURE else 0)
        # 0.05 of the rollout batches, rounded down as verl does it.
        steps = training.updates // run.staleness
        assert training.optimizer.warmup_updates // run.staleness == int(0.05 * steps)
    evaluation = study.study.evaluation
    assert (evaluation.temperature, evaluation.top_p) == (1.0, 0.7)
    assert study.sampling("aime24", DENSE) == study.sampling("aime24", MIXTURE) == (1.0, 0.7, 16384)


@pytest.mark.parametrize(
    ("name", "prompt_and_response", "gpus"),
    [
        (DENSE, 1024 + 15360, 8),
        (LONG, 1024 + 16384, 8),
        (MIXTURE, 1024 + 8192, 8),
        (f"{MIXTURE}-4x80gb", 1024 + 8192, 32),
        ("r1-distill-qwen-1.5b-32k", 1024 + 32768, 8),
        ("qwen3-4b", 1024 + 8192, 8),
        ("qwen3-8b", 1024 + 6144, 8),
        ("qwen3-30b-a3b", 1024 + 8192, 32),
        ("qwen3-30b-a3b-1x141gb", 1024 + 8192, 8),
        *[(name, 8192, 8) for name in R1.values()],
    ],
)
def test_the_models(name, prompt_and_response, gpus):
    model = load_model(CONFIG / "models" / f"{name}.yaml")
    assert model.max_prompt_tokens + model.max_response_tokens == prompt_and_response
    assert model.resources.gpus == gpus
    # Qwen3 without thinking in the ASPO paper; base models and R1 have no such switch.
    switch = name.startswith("qwen3") and "base" not in name
    assert model.thinking is (False if switch else None)


@pytest.mark.parametrize(
    ("one", "other"),
    [(MIXTURE, f"{MIXTURE}-4x80gb"), ("qwen3-30b-a3b", "qwen3-30b-a3b-1x141gb")],
)
def test_presets_for_other_cards_are_the_same_policy(one, other):
    policies = [load_model(CONFIG / "models" / f"{name}.yaml").policy for name in (one, other)]
    assert policies[0] == policies[1]


@pytest.mark.parametrize("path", sorted(CONFIG.glob("models/*.yaml")), ids=lambda path: path.stem)
def test_published_models_name_a_commit_and_have_an_estimate(path):
    model = load_model(path)
    if isinstance(model, VerlModel | VllmModel):
        assert len(model.checkpoint.revision) == 40
        assert model.resources.estimate is not None


@pytest.mark.parametrize("name", PAPERS)
def test_a_run_has_time_for_what_is_estimated(name):
    study = resolved(name)
    for run in study.runs():
        resources = study.models[run.model].resources
        seconds = study.training(run).updates * resources.estimate.update_seconds
        assert seconds / 60 < resources.minutes, run
