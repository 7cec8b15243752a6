"""Studies that train nothing."""

import shutil
from pathlib import Path

import pytest
import yaml

from respo.cli import UserError
from respo.config import Run, check_weights, load_study

CONFIG = Path(__file__).parents[2] / "config"
STUDY = {
    "title": "Released checkpoints",
    "baselines": ["deepscaler-1.5b", "nemotron-1.5b"],
    "benchmarks": ["aime24", "math500"],
    "evaluation": {"temperature": 0.8, "top_p": 1.0, "seed": 0, "samples": {"aime24": 64}},
    "tables": ["respo/table1"],
}


def load(folder, **changes):
    config = Path(shutil.copytree(CONFIG, folder / "config"))
    (config / "studies" / "only.yaml").write_text(yaml.safe_dump(STUDY | changes))
    return load_study(config, "only")


def test_baselines_alone(tmp_path):
    resolved = load(tmp_path)
    assert resolved.runs() == []
    assert resolved.evaluated() == [
        Run(model, "baseline", 0, 0) for model in ("deepscaler-1.5b", "nemotron-1.5b")
    ]
    assert [resolved.checkpoints(run) for run in resolved.evaluated()] == [[0], [0]]
    assert resolved.samples("aime24") == 64
    assert resolved.datasets == {}
    assert resolved.methods == {}


def test_no_methods_is_the_same_as_none_named(tmp_path):
    assert load(tmp_path, methods=[]).runs() == []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"baselines": []}, "only.yaml: there is nothing to do: name methods to train, or base"),
        ({"baselines": [], "method": ["grpo"]}, "method: unknown key (did you mean 'methods'?)"),
        (
            {"seeds": [1], "updates": 10, "reward": "code", "models": ["qwen3-tiny"]},
            "there are no methods: models, reward, seeds, updates. Remove it, or name methods",
        ),
        ({"train_data": "chain"}, "there are no methods: train_data. Remove it, or name methods"),
        (
            {"evaluation": STUDY["evaluation"] | {"updates": [5]}},
            "there are no methods: evaluation.updates. Remove",
        ),
        ({"baselines": ["deepscaler"]}, "baselines: 'deepscaler' is not a file of"),
        ({"figures": ["respo/fig1"]}, "only.yaml: figures: need methods, and there are none"),
        (
            {"extra_runs": [{"methods": ["grpo"], "staleness": [1]}]},
            "only.yaml: extra_runs: need methods, and there are none",
        ),
        ({"method": ["grpo"]}, "method: unknown key (did you mean 'methods'?)"),
        ({"methods": ["grpo"]}, "only.yaml: updates: is missing"),
    ],
)
def test_what_a_study_without_methods_lacks(tmp_path, changes, expected):
    with pytest.raises(UserError) as error:
        load(tmp_path, **changes)
    assert expected in str(error.value)


def test_nothing_trained_and_nothing_evaluated(tmp_path):
    config = Path(shutil.copytree(CONFIG, tmp_path / "config"))
    path = config / "studies" / "tiny.yaml"
    study = yaml.safe_load(path.read_text()) | {"extra_runs": [], "baselines": []}
    path.write_text(yaml.safe_dump(study | {"methods": []}))
    with pytest.raises(UserError, match="nothing to do: name methods to train, or baselines"):
        load_study(config, "tiny")
    del study["train_data"]
    path.write_text(yaml.safe_dump(study))
    with pytest.raises(UserError, match="train_data: is missing; add the key"):
        load_study(config, "tiny")


def test_methods_of_ones_own_have_nothing_to_join(tmp_path):
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "mine.yaml").write_text("label: Mine\n")
    config = Path(shutil.copytree(CONFIG, tmp_path / "config"))
    (config / "studies" / "only.yaml").write_text(yaml.safe_dump(STUDY))
    with pytest.raises(UserError, match="own_methods: study 'only' trains nothing"):
        load_study(config, "only", mine)


def test_weights_that_are_not_there(tmp_path, monkeypatch):
    """The study can be read, say for another machine; `check_weights` tells before any work."""
    load(tmp_path)
    path = tmp_path / "config" / "models" / "nemotron-1.5b.yaml"
    model = yaml.safe_load(path.read_text())
    path.write_text(yaml.safe_dump(model | {"checkpoint": {"path": "weights/mine"}}))
    monkeypatch.chdir(tmp_path)
    resolved = load_study(tmp_path / "config", "only")
    with pytest.raises(UserError) as caught:
        check_weights(resolved, Path("config"))
    assert str(caught.value) == (
        f"config/models/nemotron-1.5b.yaml: checkpoint.path: weights/mine: no such folder, seen "
        f"from {tmp_path}; it must be one in Hugging Face's format"
    )
    (tmp_path / "weights" / "mine").mkdir(parents=True)
    check_weights(resolved, Path("config"))
