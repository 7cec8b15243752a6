"""A study of which every cost can be worked out by hand."""

import shutil
from pathlib import Path

import pytest
import yaml

from respo.config import load_study

CONFIG = Path(__file__).parents[2] / "config"
ESTIMATE = {
    "weights_gb": 4.0,
    "responses_per_second": 2.0,
    "update_seconds": 36.0,
    "state_gb": 10.0,
}


@pytest.fixture
def config(tmp_path):
    """The project's configuration with a study `small` of one model on 8 GPUs."""
    config = Path(shutil.copytree(CONFIG, tmp_path / "config"))
    study = yaml.safe_load((config / "studies" / "respo.yaml").read_text())
    study |= {
        "models": ["big"],
        "methods": ["grpo", "respo"],
        "staleness": [8, 16],
        "baselines": ["released"],
        "extra_runs": [
            {"methods": ["respo"], "staleness": [32], "updates": 512, "evaluate": False}
        ],
        "benchmarks": ["aime24", "math500"],
        "tables": ["respo/table1"],
        "figures": ["respo/fig1", "respo/fig3"],
    }
    study["evaluation"] |= {"updates": [512, 1024], "samples": {"aime24": 48}}
    (config / "studies" / "small.yaml").write_text(yaml.safe_dump(study))
    model = yaml.safe_load((config / "models" / "qwen3-1.7b-base.yaml").read_text())
    model["resources"] |= {"estimate": ESTIMATE, "minutes": 700}
    (config / "models" / "big.yaml").write_text(yaml.safe_dump(model))
    released = yaml.safe_load((config / "models" / "deepscaler-1.5b.yaml").read_text())
    released["resources"]["estimate"] = {"weights_gb": 3.0, "responses_per_second": 1.0}
    (config / "models" / "released.yaml").write_text(yaml.safe_dump(released))
    return config


@pytest.fixture
def small(config):
    """Return a function that loads the study with changes in the files: path -> values."""

    def load(**changes):
        for name, values in changes.items():
            path = next(config.glob(f"*/{name}.yaml"))
            content = yaml.safe_load(path.read_text())
            for key, value in values.items():
                *outer, last = key.split("__")
                target = content
                for part in outer:
                    target = target[part]
                target[last] = value
            path.write_text(yaml.safe_dump(content))
        return load_study(config, "small")

    return load
