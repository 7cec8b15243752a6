"""Runs of the models for verl, made from YAML files as those of a study are."""

import shutil
from pathlib import Path

import pytest
import yaml

from respo.config import Run, load_study

CONFIG = Path(__file__).parents[3] / "config"


@pytest.fixture
def verl_study(tmp_path):
    """Return a function that loads a study of models for verl, with some keys changed."""
    config = Path(shutil.copytree(CONFIG, tmp_path / "config"))
    study = yaml.safe_load((config / "studies" / "tiny.yaml").read_text())
    # The dense half of the ReSPO study.
    study |= {
        "models": ["qwen3-1.7b-base"],
        "methods": ["respo"],
        "staleness": [8],
        "seeds": [3],
        "extra_runs": [],
        "updates": 1024,
        "mini_batch": 32,
        "checkpoints": [256, 512, 768, 1024],
        "optimizer": {
            "learning_rate": 1e-6,
            "warmup_updates": 51,
            "betas": [0.9, 0.95],
            "weight_decay": 0.1,
            "gradient_clip": 1.0,
        },
    }
    study["evaluation"]["updates"] = [1024]

    def load(model_changes=None, **changes):
        values = study | changes
        (config / "studies" / "cluster.yaml").write_text(yaml.safe_dump(values))
        for name in values["models"] if model_changes else ():
            path = config / "models" / f"{name}.yaml"
            model = yaml.safe_load(path.read_text())
            for key, value in model_changes.items():
                *outer, last = key.split(".")
                target = model
                for part in outer:
                    target = target[part]
                target[last] = value
            path.write_text(yaml.safe_dump(model))
        return load_study(config, "cluster")

    load.config = config
    return load


@pytest.fixture
def verl_run(verl_study):
    """Return a function that makes one run and the resources of its model."""

    def make(model="qwen3-1.7b-base", method="respo", staleness=8, **changes):
        resolved = verl_study(models=[model], methods=[method], staleness=[staleness], **changes)
        run = resolved.run_config(Run(model, method, staleness, 3), "")
        return run, resolved.models[model].resources

    return make
