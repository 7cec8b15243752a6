"""Models for verl: what a file may say, and which runs they are refused for."""

from pathlib import Path

import pytest
import yaml

from respo.cli import UserError
from respo.config import load_model, load_run_config, load_study
from respo.config.schema import VllmModel
from respo.config.yaml import canonical

CONFIG = Path(__file__).parents[2] / "config"
DENSE, MIXTURE = "qwen3-1.7b-base", "qwen3-30b-a3b-base"


def edit(path, **changes):
    """Change keys; `a__b` is the key b below a, and ... removes a key."""
    values = yaml.safe_load(path.read_text())
    for key, value in changes.items():
        *outer, last = key.split("__")
        target = values
        for part in outer:
            target = target[part]
        if value is ...:
            del target[last]
        else:
            target[last] = value
    path.write_text(yaml.safe_dump(values))


def refused(config, name, **changes):
    path = config / "models" / f"{name}.yaml"
    edit(path, **changes)
    with pytest.raises(UserError) as error:
        load_model(path)
    prefix = f"{path}: "
    assert str(error.value).startswith(prefix)
    return str(error.value).removeprefix(prefix)


@pytest.mark.parametrize("path", sorted(CONFIG.glob("models/*.yaml")), ids=lambda path: path.stem)
def test_every_model_of_the_project_loads(path):
    model = load_model(path)
    if not isinstance(model, VllmModel):
        assert type(model.policy).model_fields.keys() < type(model).model_fields.keys()


@pytest.mark.parametrize(
    ("name", "changes", "expected"),
    [
        (
            DENSE,
            {"checkpoint": {}},
            "checkpoint: name either hub and revision, or path",
        ),
        (DENSE, {"checkpoint__path": "/w"}, "checkpoint: name either hub"),
        (DENSE, {"checkpoint__revision": ...}, "checkpoint: hub and revision belong"),
        (DENSE, {"checkpoint": {"path": "/w", "revision": "x"}}, "checkpoint: hub and"),
        (DENSE, {"checkpoint__hub": "Qwen3"}, "checkpoint.hub: 'Qwen3' is not allowed"),
        (DENSE, {"thinking": ...}, "thinking: is missing"),
        (DENSE, {"thinking": "off"}, "thinking: 'off' is not allowed"),
        (DENSE, {"engine": "fsdp2"}, "engine: 'fsdp2' is not allowed"),
        (DENSE, {"backend": "sglang"}, "backend: 'sglang' is not allowed"),
        (DENSE, {"backend": "vllm"}, "resources.gpus: is missing; add the key"),
        (MIXTURE, {"master_weights": "bf16"}, "master_weights: 'bf16' is not possible with engine"),
        # Keys of the other backend.
        (DENSE, {"architecture": {}}, "architecture: unknown key; allowed: backend, checkpoint,"),
        (DENSE, {"warm_start": {}}, "warm_start: unknown key"),
        ("qwen3-tiny", {"checkpoint": {}}, "checkpoint: unknown key; allowed: backend, architect"),
        ("qwen3-tiny", {"verl_overrides": []}, "verl_overrides: unknown key"),
        ("qwen3-tiny", {"resources__nodes": 1}, "resources.nodes: unknown key"),
        # GPUs and how they share the work.
        (
            DENSE,
            {"resources__parallelism__sequence": 3},
            "resources: parallelism: sequence = 3 does not divide 8 GPUs of the job",
        ),
        (
            DENSE,
            {"resources__parallelism__rollout_tensor": 16, "resources__nodes": 2},
            "resources: parallelism: rollout_tensor = 16 does not divide 8 GPUs of a node",
        ),
        (
            MIXTURE,
            {"resources__parallelism__pipeline": 3},
            "resources: parallelism: tensor x pipeline x context = 6 does not divide 8 GPUs",
        ),
        (
            MIXTURE,
            {"resources__parallelism__expert_tensor": 2},
            "resources: parallelism: expert x expert_tensor x pipeline = 16 does not divide 8 GPUs",
        ),
        (
            DENSE,
            {"resources__parallelism__tensor": 2},
            "resources.parallelism.tensor: engine fsdp has none; leave it out",
        ),
        (
            MIXTURE,
            {"resources__parallelism__sequence": 2},
            "resources.parallelism.sequence: engine megatron has none; leave it out",
        ),
        (
            MIXTURE,
            {"mixture_of_experts": False},
            "resources.parallelism.expert, expert_tensor: only for a mixture of experts",
        ),
        (
            DENSE,
            # Twice this on two GPUs of a sequence; 16,384 are needed.
            {"resources__tokens_per_gpu": 8191},
            "resources.tokens_per_gpu: 8191 is too few for a prompt and response of 16384 tokens",
        ),
        (DENSE, {"resources__rollout_memory": 1.0}, "resources.rollout_memory: 1.0 is not allowed"),
        (DENSE, {"resources__gpus": 8}, "resources.gpus: unknown key; allowed: memory_mb"),
        # Overrides.
        (DENSE, {"verl_overrides": ["trainer.x"]}, "verl_overrides.0: 'trainer.x' is not allowed"),
        (DENSE, {"verl_overrides": ["a b=1"]}, "verl_overrides.0: 'a b=1' is not allowed"),
        (DENSE, {"verl_overrides": ["--help=1"]}, "verl_overrides.0: '--help=1' is not allowed"),
        (
            DENSE,
            {"resources__verl_overrides": ["~a=1 b"]},
            "resources.verl_overrides.0: '~a=1 b' is not allowed",
        ),
    ],
)
def test_a_bad_model(config, name, changes, expected):
    assert refused(config, name, **changes).startswith(expected)


def test_tokens_of_a_sequence_are_divided_among_its_gpus(config):
    path = config / "models" / f"{DENSE}.yaml"
    edit(path, resources__tokens_per_gpu=8192)
    assert load_model(path).data_parallel == 4


def test_a_folder_may_take_the_place_of_the_hub(config):
    path = config / "models" / f"{DENSE}.yaml"
    edit(path, checkpoint={"path": "/models/qwen"})
    assert load_model(path).checkpoint.path == "/models/qwen"


# --- runs -----------------------------------------------------------------------------------------


@pytest.fixture
def study(config):
    """The laptop study on a model for verl."""
    path = config / "studies" / "tiny.yaml"
    edit(path, models=[DENSE], mini_batch=32)
    return path


def message(config):
    with pytest.raises(UserError) as error:
        load_study(config, "tiny")
    return str(error.value)


@pytest.mark.parametrize(
    ("model", "changes", "expected"),
    [
        (
            DENSE,
            {"routing_replay": "R3"},
            "routing_replay: 'R3' needs a mixture of experts, and mixture_of_experts is false",
        ),
        (
            DENSE,
            {"dynamic_sampling": 2},
            "dynamic_sampling: 2 is not possible with verl, whose own form knows no limit",
        ),
        (
            DENSE,
            {"checkpoints": [100, 128]},
            "checkpoints: 100 lies inside a rollout batch of N = 8 updates",
        ),
        (
            DENSE,
            {"mini_batch": 3},
            "mini_batch: 3 prompts of 8 responses do not divide among 16 data-parallel ranks",
        ),
        (
            DENSE,
            {"optimizer__warmup_updates": 128},
            "optimizer: warmup_updates 128 lasts as long as the run",
        ),
    ],
)
def test_what_verl_cannot_train(config, study, model, changes, expected):
    edit(study, models=[model])
    edit(config / "models" / f"{model}.yaml", resources__nodes=4)
    load_study(config, "tiny")
    if "checkpoints" in changes:
        edit(study, evaluation__updates=[128])
    edit(study, **changes)
    assert message(config).startswith(f"{study}: {expected}")


def test_routing_is_replayed_by_megatron_only(config, study):
    edit(study, models=[MIXTURE], routing_replay="R3")
    load_study(config, "tiny")
    model = config / "models" / f"{MIXTURE}.yaml"
    edit(model, engine="fsdp", resources__parallelism={})
    assert message(config).startswith(f"{study}: routing_replay: 'R3' needs engine megatron")


def test_a_run_folder_is_held_to_the_same(config, study, tmp_path):
    resolved = load_study(config, "tiny")
    run = resolved.run_config(resolved.runs()[0], "")
    values = run.model_dump(mode="json")
    path = tmp_path / "config.yaml"
    path.write_text(canonical(values))
    assert load_run_config(path) == run
    values["training"]["dynamic_sampling"] = 1
    path.write_text(canonical(values))
    with pytest.raises(UserError, match=r"training\.dynamic_sampling: 1 is not possible"):
        load_run_config(path)


def test_only_the_policy_trains_anew(config, study):
    def texts():
        resolved = load_study(config, "tiny")
        return {
            name: text()
            for name, text in resolved.config_texts(Path("R"), lambda name: name).items()
            if not name.endswith("study.yaml")
        }

    before = texts()
    # The weights are not made here, only found.
    initial = before[f"R/initial/{DENSE}/config.yaml"]
    assert yaml.safe_load(initial) == {
        "checkpoint": {
            "hub": "Qwen/Qwen3-1.7B-Base",
            "revision": "ea980cb0a6c2ae4b936e82123acc929f1cec04c1",
            "path": None,
        }
    }
    model = config / "models" / f"{DENSE}.yaml"
    edit(
        model,
        label="other",
        resources__nodes=2,
        resources__tokens_per_gpu=20000,
        resources__offload=True,
        resources__keep_last=3,
        resources__parallelism={},
        resources__verl_overrides=["+a=1"],
    )
    assert texts() == before
    edit(model, verl_overrides=["+a=1"])
    assert all(text != before[name] for name, text in texts().items() if "/N" in name)


def test_the_text_of_a_local_run_is_as_it_was():
    resolved = load_study(CONFIG, "tiny")
    name = f"R/{resolved.runs()[0].name}/config.yaml"
    text = resolved.config_texts(Path("R"), lambda name: name)[name]()
    model = yaml.safe_load(text)["model"]
    assert list(model) == [
        "backend",
        "architecture",
        "warm_start",
        "max_prompt_tokens",
        "max_response_tokens",
    ]
    assert text.startswith("model:\n  backend: local\n  architecture:\n    model_type: qwen3\n")
