"""verl 0.9.1 takes the options of every model, and they arrive where it looks for them."""

import importlib.util
import sys
import warnings
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch

from respo.config import load_model, load_study
from respo.config.schema import VerlModel
from respo.parquet import write_parquet
from respo.rewards import overlong_penalty
from respo.training.verl.options import Paths, verl_options
from respo.training.verl.prompts import verl_prompts

if importlib.util.find_spec("verl") is None:
    pytest.skip("verl is not installed", allow_module_level=True)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from hydra import compose, initialize_config_module
    from hydra.errors import ConfigCompositionException
    from omegaconf import OmegaConf
    from verl import DataProto
    from verl.trainer.config import AlgoConfig
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils.config import omega_conf_to_dataclass, validate_config
    from verl.workers.config import FSDPActorConfig, McoreActorConfig, RolloutConfig

pytestmark = [pytest.mark.peers, pytest.mark.filterwarnings("ignore")]

CONFIG = Path(__file__).parents[3] / "config"
# A path that Hydra could misread in several ways.
PATHS = Paths(run=Path("/re sults, [1]=a/it's/m/N8/seed3"), weights=Path("/weights/a\\"))
STUDIES = [load_study(CONFIG, path.stem) for path in sorted(CONFIG.glob("studies/*.yaml"))]


def runs_of_verl():
    """Every run of every study of models for verl; of runs that differ in their seed, the first."""
    runs = {}
    for resolved in STUDIES:
        for run in resolved.runs():
            if isinstance(resolved.models[run.model], VerlModel):
                kind = resolved.name, run.model, run.method, run.staleness
                runs.setdefault(kind, (resolved, run))
    return list(runs.values())


RUNS = runs_of_verl()
# Those for other cards.
PRESETS = [
    path.stem
    for path in sorted(CONFIG.glob("models/*.yaml"))
    if isinstance(load_model(path), VerlModel) and path.stem not in {run.model for _, run in RUNS}
]


def composed(overrides):
    with initialize_config_module("verl.trainer.config", version_base=None):
        return compose("ppo_trainer", overrides=overrides)


def validated(run, resources):
    """The configuration as main_ppo makes and checks it, and the dataclasses that workers use."""
    overrides = verl_options(run, resources, PATHS)
    config = composed(overrides)
    validate_config(config, need_reference_policy(config), need_critic(config))
    OmegaConf.resolve(config)
    actor = omega_conf_to_dataclass(config.actor_rollout_ref.actor)
    rollout = omega_conf_to_dataclass(config.actor_rollout_ref.rollout)
    assert isinstance(rollout, RolloutConfig)
    assert isinstance(omega_conf_to_dataclass(config.algorithm), AlgoConfig)
    return overrides, config, actor


@pytest.mark.parametrize("model", PRESETS)
def test_presets_that_no_study_names(verl_study, model):
    resolved = verl_study(models=[model], methods=["respo"], staleness=[16])
    config = resolved.run_config(resolved.runs()[0], "")
    overrides, found, _ = validated(config, resolved.models[model].resources)
    assert_arrived(overrides, found)


def assert_arrived(overrides, found):
    """Hydra keeps the last of two values: none of them may be lost on its way."""
    for override in overrides:
        key, _, value = override.partition("=")
        if "_target_" in key or value[:1] in "['":
            continue
        if key != "model_engine":
            got = OmegaConf.select(found, key.lstrip("+"))
            assert str(got) == {"null": "None"}.get(value, value), override


@pytest.mark.parametrize(
    ("resolved", "run"), [pytest.param(*pair, id=f"{pair[0].name}/{pair[1].name}") for pair in RUNS]
)
def test_every_run_of_every_study(resolved, run):
    config = resolved.run_config(run, "")
    overrides, found, actor = validated(config, resolved.models[run.model].resources)
    assert_arrived(overrides, found)
    engine = FSDPActorConfig if config.model.engine == "fsdp" else McoreActorConfig
    assert isinstance(actor, engine)
    assert not need_critic(found)
    training, trainer = config.training, found.trainer
    assert trainer.total_training_steps * run.staleness == training.updates
    assert found.data.train_batch_size == run.staleness * training.mini_batch
    # Each checkpoint for evaluation is at a step at which verl saves.
    saved = trainer.save_freq * run.staleness
    assert all(update % saved == 0 for update in training.checkpoints)
    assert need_reference_policy(found) == (training.kl_coefficient > 0)
    assert actor.policy_loss.parameters == config.objective.parameters
    assert actor.loss_agg_mode == training.loss_aggregation
    replay = found.actor_rollout_ref.rollout.enable_rollout_routing_replay
    assert replay == (training.routing_replay == "R3")


def test_the_dense_run_of_the_respo_study(verl_run):
    run, resources = verl_run()
    _, config, actor = validated(run, resources)
    # By hand: N = 8, M = 32, G = 8, 1,024 updates, warm-up of 51 updates.
    assert config.data.train_batch_size == 256
    # verl's trainer multiplies by rollout.n: 256 responses per update.
    assert actor.ppo_mini_batch_size * actor.rollout_n == 256
    assert config.trainer.total_training_steps == 128
    assert actor.optim.lr == 1e-6
    assert actor.optim.lr_warmup_steps == 6
    assert tuple(actor.optim.betas) == (0.9, 0.95)
    assert actor.optim.optimizer == "AdamW"
    assert actor.optim.weight_decay == 0.1
    assert actor.optim.clip_grad == 1.0
    assert actor.strategy == actor.engine.strategy == "fsdp2"
    assert actor.engine.ulysses_sequence_parallel_size == 2
    assert actor.engine.model_dtype == "bf16"
    assert actor.use_remove_padding
    assert actor.use_dynamic_bsz
    rollout = config.actor_rollout_ref.rollout
    assert rollout.log_prob_use_dynamic_bsz
    assert rollout.log_prob_max_token_len_per_gpu == actor.ppo_max_token_len_per_gpu == 16384
    assert (rollout.prompt_length, rollout.response_length) == (1024, 15360)
    assert (rollout.temperature, rollout.top_p, rollout.top_k) == (1.0, 1.0, -1)
    assert not need_reference_policy(config)
    assert actor.policy_loss.beta_pos == 0.5
    sampler = config.trainer.v1.sampler.custom_sampler
    assert (sampler.path, sampler.name) == ("pkg://respo.training.verl.sampler", "PromptOrder")


def test_paths_survive_hydra(verl_run):
    _, config, _ = validated(*verl_run())
    assert config.data.train_files == str(PATHS.prompts)
    assert config.data.val_files == str(PATHS.prompts)
    assert config.trainer.default_local_dir == str(PATHS.checkpoints)
    assert config.actor_rollout_ref.model.path == str(PATHS.weights)


@pytest.mark.parametrize("path", ["/a${b}", "null", "1e5", "/ö", "/a\\'b", "/a\\\\", "'", "{a: b}"])
def test_any_text_survives_hydra(verl_run, path):
    run, resources = verl_run()
    config = composed(verl_options(run, resources, Paths(run=PATHS.run, weights=Path(path))))
    assert config.actor_rollout_ref.model.path == path


@pytest.mark.parametrize("mode", ["R2", "R3"])
def test_routing_replay(verl_run, mode):
    run, resources = verl_run("qwen3-30b-a3b-base", routing_replay=mode)
    _, config, actor = validated(run, resources)
    assert actor.engine.router_replay.mode == mode
    assert actor.engine.use_remove_padding
    assert config.actor_rollout_ref.rollout.enable_rollout_routing_replay == (mode == "R3")
    # The reference of a KL loss chooses its own experts.
    assert config.actor_rollout_ref.ref.megatron.router_replay.mode == "disabled"


def test_megatron(verl_run):
    run, resources = verl_run("qwen3-30b-a3b-base")
    _, config, actor = validated(run, resources)
    engine = actor.engine
    assert engine.tensor_model_parallel_size == 2
    assert engine.expert_model_parallel_size == 8
    assert engine.expert_tensor_parallel_size == 1
    assert engine.vanilla_mbridge
    assert engine.override_transformer_config["moe_router_dtype"] == "fp32"
    assert engine.override_transformer_config["recompute_granularity"] == "full"
    # Whatever else is in it is handed to Megatron's OptimizerConfig.
    assert actor.optim.override_optimizer_config == {"adam_beta1": 0.9, "adam_beta2": 0.95}
    assert actor.optim.lr_decay_style == "constant"
    assert config.actor_rollout_ref.ref.megatron.tensor_model_parallel_size == 2


def test_the_kl_loss_needs_the_reference_policy(verl_run):
    run, resources = verl_run(kl_coefficient=0.001, entropy_coefficient=0.01)
    _, config, actor = validated(run, resources)
    assert need_reference_policy(config)
    assert (actor.kl_loss_coef, actor.kl_loss_type) == (0.001, "low_var_kl")
    assert actor.entropy_coeff == 0.01


def test_the_reward_manager_finds_reward_and_penalty(verl_run, monkeypatch):
    # Only for reward models behind a server.
    monkeypatch.setitem(sys.modules, "aiohttp", ModuleType("aiohttp"))
    from verl.trainer.ppo.reward import load_reward_manager

    run, resources = verl_run("qwen3-30b-a3b-base")
    _, config, _ = validated(run, resources)
    tokenizer = SimpleNamespace(decode=lambda ids, skip_special_tokens: r"so \boxed{33}")
    manager = load_reward_manager(config, tokenizer=tokenizer)
    # A response of 6,144 of 8,192 tokens, half way through the buffer of 4,096.
    valid_BT = (torch.arange(1024 + 8192) < 1024 + 6144).long().unsqueeze(0)
    response = DataProto.from_dict(
        tensors={"responses": torch.zeros(1, 8192).long(), "attention_mask": valid_BT},
        non_tensors={
            "data_source": np.array(["respo"], dtype=object),
            "reward_model": np.array([{"ground_truth": "33"}], dtype=object),
            "extra_info": np.array([{"index": 0}], dtype=object),
        },
    )
    scored = manager.loop.run_until_complete(manager.run_single(response))
    assert scored["reward_score"] == 1.0 + overlong_penalty(6144, 8192, 4096, 1.0) == 0.5
    assert scored["reward_extra_info"]["acc"] == 1.0


def test_verl_reads_the_prompts_in_their_order(verl_run, tmp_path, monkeypatch):
    import datasets
    from verl.utils.dataset.rl_dataset import RLHFDataset

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    run, resources = verl_run()
    paths = Paths(run=tmp_path, weights=tmp_path)
    config = composed(verl_options(run, resources, paths))
    rows = [{"id": f"p{i}", "prompt": f"{i}?", "answer": str(i)} for i in range(5)]

    def apply_chat_template(chat, **_):
        return chat[0]["content"]

    def encode(text, **_):
        return {"input_ids": [0] * len(text)}

    tokenizer = type("Tokenizer", (), {"__call__": staticmethod(encode)})()
    tokenizer.apply_chat_template = apply_chat_template
    table, _ = verl_prompts(run, rows, tokenizer)
    write_parquet(paths.prompts, table, {})
    found = RLHFDataset(config.data.train_files, tokenizer, config.data)
    # Exactly as many as all rollout batches together.
    assert len(found) == config.trainer.total_training_steps * config.data.train_batch_size
    assert not config.data.shuffle
    for index in (0, 1, 7):
        row, expected = found[index], table.slice(index, 1).to_pylist()[0]
        assert row["raw_prompt"] == expected["prompt"]
        assert row["reward_model"]["ground_truth"] == expected["reward_model"]["ground_truth"]
        assert row["data_source"] == "respo"
    validation = RLHFDataset(
        config.data.val_files, tokenizer, config.data, max_samples=config.data.val_max_samples
    )
    assert len(validation) == 1


@pytest.mark.parametrize(
    "option", ["data.train_batchsize=8", "actor_rollout_ref.actor.optim.learning_rate=1"]
)
def test_an_option_that_verl_does_not_have_is_noticed(verl_run, option):
    run, resources = verl_run()
    with pytest.raises(ConfigCompositionException):
        composed([*verl_options(run, resources, PATHS), option])
