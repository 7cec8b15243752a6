"""Which runs a study has beside its grid, and what is evaluated."""

import shutil
from pathlib import Path

import pytest
import yaml

from respo.cli import UserError
from respo.config import Run, load_cluster, load_study

CONFIG = Path(__file__).parents[2] / "config"
DENSE, PUBLISHED = "qwen3-tiny", "published"
GRPO, SHORT = Run(DENSE, "grpo", 8, 1), Run(DENSE, "vespo", 32, 7)


@pytest.fixture
def config(config):
    """The copy, with a study of one run."""
    change(config, methods=["grpo"], staleness=[8], seeds=[1], extra_runs=[], baselines=[])
    resources = {"gpus": 2, "memory_mb": 1, "minutes": 1}
    model = {"backend": "vllm", "label": "P", "checkpoint": {"path": "/w"}, "thinking": None}
    model |= {"max_prompt_tokens": 10, "max_response_tokens": 20, "resources": resources}
    (config / "models" / f"{PUBLISHED}.yaml").write_text(yaml.safe_dump(model))
    return config


def change(config, **changes):
    edit(config / "studies" / "tiny.yaml", **changes)


def edit(path, **changes):
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | changes))


def extra(config, **keys):
    change(config, extra_runs=[{"methods": ["vespo"], "staleness": [32], "seeds": [7], **keys}])


def message(config):
    with pytest.raises(UserError) as error:
        load_study(config, "tiny")
    return str(error.value)


def test_extra_runs_may_be_shorter_and_go_without_evaluation(config):
    extra(config, updates=96, evaluate=False)
    resolved = load_study(config, "tiny")
    assert resolved.runs() == [GRPO, SHORT]
    assert resolved.evaluated() == [GRPO]
    assert resolved.training(GRPO).updates == 128
    assert resolved.training(GRPO).checkpoints == [64, 128]
    assert resolved.training(SHORT).updates == 96
    assert resolved.training(SHORT).checkpoints == [64, 96]


def test_extra_runs_may_have_other_data(config):
    shutil.copy(config / "datasets" / "chain.yaml", config / "datasets" / "other.yaml")
    path = config / "datasets" / "other.yaml"
    path.write_text(path.read_text().replace("rows: 8192", "rows: 100"))
    extra(config, train_data="other")
    resolved = load_study(config, "tiny")
    assert resolved.train_data(GRPO) == "chain"
    assert resolved.train_data(SHORT) == "other"
    assert resolved.run_config(SHORT, "").train_data.rows == 100
    extra(config, train_data="mine")
    assert "extra_runs.0.train_data: 'mine' is not a file of" in message(config)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"updates": 100, "evaluate": False}, "staleness: 32 does not divide updates 100"),
        ({"updates": 256, "evaluate": False}, "updates: 256 is more than the study's 128"),
        ({"updates": 96}, "write evaluate: false"),
        ({"verl_overrides": ["a=1"]}, "verl_overrides: 'a=1' is for models of backend verl"),
    ],
)
def test_impossible_extra_runs(config, keys, expected):
    extra(config, **keys)
    assert expected in message(config)


def test_options_of_verl_come_from_study_block_and_command_line(config):
    change(config, models=["qwen3-1.7b-base"], verl_overrides=["a=1"])
    extra(config, verl_overrides=["b=2"])
    resolved = load_study(config, "tiny", verl_overrides=["c=3"])
    grpo, vespo = resolved.runs()
    assert resolved.run_config(grpo, "").training.verl_overrides == ["a=1", "c=3"]
    assert resolved.run_config(vespo, "").training.verl_overrides == ["a=1", "c=3", "b=2"]


def test_baselines_are_evaluated_first_and_never_trained(config):
    change(config, baselines=[PUBLISHED, DENSE])
    resolved = load_study(config, "tiny")
    untrained = Run(DENSE, "baseline", 0, 0)
    assert resolved.runs() == [GRPO]
    assert resolved.evaluated() == [untrained, GRPO, Run(PUBLISHED, "baseline", 0, 0)]
    assert resolved.checkpoints(untrained) == [0]
    assert resolved.checkpoints(GRPO) == [128]
    assert str(untrained.cell(Path("R"), 0, "b")) == (
        f"R/{DENSE}/baseline/N0/seed0/eval/0/b/cell.json"
    )
    texts = resolved.config_texts(Path("R"), lambda name: "")
    assert yaml.safe_load(texts[f"R/initial/{PUBLISHED}/config.yaml"]())["checkpoint"] == {
        "hub": None,
        "revision": None,
        "path": "/w",
    }
    assert not any("baseline" in name for name in texts)


def test_bad_baselines(config):
    change(config, baselines=["nobody"])
    assert "baselines: 'nobody' is not a file of" in message(config)
    change(config, baselines=[], models=[PUBLISHED])
    assert "'published' has backend vllm, which is evaluated only" in message(config)
    change(config, models=[DENSE], methods=["baseline"])
    shutil.copy(config / "methods" / "grpo.yaml", config / "methods" / "baseline.yaml")
    assert "methods: 'baseline' stands for models as they come" in message(config)


def test_a_study_chooses_samples_and_response_limit(config):
    sampling = {"updates": [128], "temperature": 1.0, "top_p": 0.7, "seed": 0}
    change(config, evaluation=sampling | {"samples": {"chain-easy": 64}, "max_response_tokens": 9})
    resolved = load_study(config, "tiny")
    assert resolved.samples("chain-easy") == 64
    assert resolved.samples("chain-hard") == resolved.benchmarks["chain-hard"].samples
    assert resolved.sampling("chain-hard", DENSE) == (1.0, 0.7, 9)
    edit(config / "benchmarks" / "chain-hard.yaml", temperature=0.6, top_p=0.95)
    edit(config / "benchmarks" / "chain-easy.yaml", max_response_tokens=7)
    resolved = load_study(config, "tiny")
    assert resolved.sampling("chain-hard", DENSE) == (0.6, 0.95, 9)
    assert resolved.sampling("chain-easy", DENSE) == (1.0, 0.7, 7)
    change(config, evaluation=sampling)
    limit = resolved.models[DENSE].max_response_tokens
    assert load_study(config, "tiny").sampling("chain-hard", DENSE) == (0.6, 0.95, limit)
    change(config, evaluation=sampling | {"samples": {"aime25": 64}})
    assert "evaluation.samples: 'aime25' is not in benchmarks" in message(config)


def test_what_slurm_is_told(tmp_path):
    path = tmp_path / "cluster.yaml"
    rest = "partition: null, gpu_partition: gpu, gpu_type: h100, gpus_per_node: 8"
    path.write_text(f"{{account: me, {rest}}}")
    assert load_cluster(path).gpu_partition == "gpu"
    path.write_text(f"{{account: 'me; rm', {rest}}}")
    with pytest.raises(UserError, match="account: 'me; rm' is not allowed"):
        load_cluster(path)
    path.write_text("{account: a, partition: null, gpu_partition: g, gpu_type: 'h100:8'}")
    with pytest.raises(UserError, match="gpu_type: 'h100:8' is not allowed"):
        load_cluster(path)
    assert load_cluster(CONFIG / "cluster.yaml").account is None
