"""Runs of the models for verl, made from YAML files as those of a study are, and CPUs for them."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
import yaml

from respo.config import Run, load_study

CONFIG = Path(__file__).parents[3] / "config"
HERE = Path(__file__).parent
ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
ON_A_CPU = [
    "trainer.device=cpu",
    "data.dataloader_num_workers=0",
    "+actor_rollout_ref.model.override_config.attn_implementation=sdpa",
    f"{ACTOR}.use_torch_compile=False",
    f"{ACTOR}.fsdp_config.use_torch_compile=False",
    f"{ROLLOUT}.enforce_eager=True",
    f"+{ROLLOUT}.enable_sleep_mode=False",
    f"{ROLLOUT}.free_cache_engine=False",
    f"{ROLLOUT}.max_num_seqs=64",
    f"{ROLLOUT}.load_format=auto",
    f"{ROLLOUT}.agent.num_workers=1",
    f"{ROLLOUT}.checkpoint_engine.update_weights_bucket_megabytes=16",
    "reward.num_workers=1",
    "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
    "ray_kwargs.ray_init.num_cpus=16",
    "+ray_kwargs.ray_init.num_gpus=1",
    "+ray_kwargs.ray_init.include_dashboard=False",
]
ENVIRONMENT = {
    "VERL_USE_EXTERNAL_MODULES": "cpu_platform,cpu_vllm,respo.training.verl.plugin",
    "VERL_PLATFORM": "cpu",
    "VERL_ENGINE_DEVICE": "cuda",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "TORCH_COMPILE_DISABLE": "1",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "HYDRA_FULL_ERROR": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}


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


@pytest.fixture
def cpu_options():
    """Options with which `main_ppo` runs on a CPU; of two settings of an option the last counts."""
    # Not in pytest's folder: names of sockets must be short.
    folder = Path(tempfile.mkdtemp(prefix="ray"))
    yield [*ON_A_CPU, f"+ray_kwargs.ray_init._temp_dir={folder}"]
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def cpu_environment():
    """Return the variables that go with `cpu_options`."""
    path = os.pathsep.join((str(HERE), os.environ.get("PYTHONPATH", "")))
    return os.environ | ENVIRONMENT | {"PYTHONPATH": path}
