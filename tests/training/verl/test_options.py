"""What a run becomes in verl's options; whether verl takes them is in test_options_verl.py."""

from pathlib import Path

import pytest
import yaml

from respo.cli import UserError
from respo.config.yaml import canonical
from respo.training.verl import options
from respo.training.verl.options import Paths, verl_options

PATHS = Paths(run=Path("/results/s/m/respo/N8/seed3"), weights=Path("/weights"))
ACTOR = "actor_rollout_ref.actor"
ROLLOUT = "actor_rollout_ref.rollout"


@pytest.fixture
def values(verl_run):
    """Return a function that gives the options of a run as a dictionary."""

    def make(*arguments, **changes):
        run, resources = verl_run(*arguments, **changes)
        return dict(option.split("=", 1) for option in verl_options(run, resources, PATHS))

    return make


def test_the_dense_run_of_the_respo_study(values):
    found = values()
    # By hand: N = 8, M = 32, G = 8, 1,024 updates, warm-up of 51 (5 %), checkpoints every 256.
    assert {
        "model_engine": "dp",
        "data.train_batch_size": "256",
        f"{ACTOR}.ppo_mini_batch_size": "32",
        f"{ROLLOUT}.n": "8",
        "trainer.total_training_steps": "128",
        f"{ACTOR}.optim.lr_warmup_steps": "6",
        "trainer.save_freq": "32",
        "data.max_prompt_length": "1024",
        "data.max_response_length": "15360",
        f"{ROLLOUT}.max_model_len": "16384",
        f"{ACTOR}.optim.lr": "1e-06",
        f"{ACTOR}.optim.betas": "[0.9,0.95]",
        f"{ACTOR}.policy_loss.loss_mode": "respo_respo",
        f"{ACTOR}.policy_loss._target_": "respo.training.verl.plugin.RespoConfig",
        f"+{ACTOR}.policy_loss.beta_pos": "0.5",
        f"{ACTOR}.use_kl_loss": "False",
        f"{ACTOR}.calculate_entropy": "True",
        f"{ACTOR}.ulysses_sequence_parallel_size": "2",
        f"{ACTOR}.fsdp_config.model_dtype": "bf16",
        f"{ACTOR}.fsdp_config.param_offload": "False",
        f"{ROLLOUT}.tensor_model_parallel_size": "2",
        f"{ROLLOUT}.seed": "3",
        f"{ROLLOUT}.temperature": "1.0",
        f"{ROLLOUT}.top_p": "1.0",
        # Order is what the mini-batches are made of.
        "data.shuffle": "False",
        f"{ACTOR}.shuffle": "False",
        "trainer.v1.sampler.custom_sampler.name": "PromptOrder",
        "trainer.default_local_dir": "/results/s/m/respo/N8/seed3/verl/checkpoints",
        "trainer.experiment_name": "m-respo-N8-seed3",
        "data.train_files": "/results/s/m/respo/N8/seed3/verl/prompts.parquet",
    }.items() <= found.items()
    assert not any("overlong" in key or "megatron" in key for key in found)
    assert "+data.apply_chat_template_kwargs.enable_thinking" not in found


def test_the_temperature_is_the_studys(values):
    assert values(temperature=0.8)[f"{ROLLOUT}.temperature"] == "0.8"


def test_n_decides_what_is_counted_in_rollout_batches(values):
    found = values(staleness=32)
    assert found["data.train_batch_size"] == "1024"
    assert found["trainer.total_training_steps"] == "32"
    assert found[f"{ACTOR}.optim.lr_warmup_steps"] == "1"  # int(0.05 * 32)
    assert found["trainer.save_freq"] == "8"


def test_unequal_distances_of_checkpoints_have_a_common_one(values):
    found = values(checkpoints=[256, 640, 1024])
    assert found["trainer.save_freq"] == "16"  # 128 updates


@pytest.mark.parametrize("reward", ["strict_box", "math_verify"])
def test_the_reward(values, reward):
    assert {
        "reward.custom_reward_function.path": "pkg://respo.training.verl.reward",
        "reward.custom_reward_function.name": "compute_score",
        "+reward.custom_reward_function.reward_kwargs.verifier": reward,
    }.items() <= values(reward=reward).items()


def test_the_mixture_of_experts_of_the_respo_study(values):
    found = values("qwen3-30b-a3b-base")
    buffer = "+reward.reward_kwargs.overlong_buffer_cfg"
    assert {
        "model_engine": "megatron",
        f"{ACTOR}.optim.use_checkpoint_opt_param_scheduler": "True",
        f"{ACTOR}.megatron.tensor_model_parallel_size": "2",
        f"{ACTOR}.megatron.expert_model_parallel_size": "8",
        f"{ACTOR}.megatron.expert_tensor_parallel_size": "1",
        f"{ACTOR}.megatron.router_replay.mode": "disabled",
        f"{ROLLOUT}.enable_rollout_routing_replay": "False",
        f"{ROLLOUT}.tensor_model_parallel_size": "4",
        f"+{ACTOR}.optim.override_optimizer_config.adam_beta2": "0.95",
        f"{buffer}.len": "4096",
        f"{buffer}.penalty_factor": "1.0",
        "+reward.reward_kwargs.max_resp_len": "8192",
        f"+{ACTOR}.megatron.override_transformer_config.moe_router_dtype": "fp32",
        f"{ACTOR}.megatron.override_transformer_config.recompute_granularity": "full",
    }.items() <= found.items()
    assert f"{ACTOR}.strategy" not in found


def test_four_nodes_place_the_same_policy(verl_run):
    one, of_one = verl_run("qwen3-30b-a3b-base")
    four, of_four = verl_run("qwen3-30b-a3b-base-4x80gb")
    assert canonical(one.model_dump(mode="json")) == canonical(four.model_dump(mode="json"))
    assert (of_one.gpus, of_four.gpus) == (8, 32)
    found = verl_options(four, of_four, PATHS)
    assert {"trainer.nnodes=4", "trainer.n_gpus_per_node=8"} <= set(found)


@pytest.mark.parametrize(("mode", "of_rollout"), [("R2", "False"), ("R3", "True")])
def test_routing_replay(values, mode, of_rollout):
    found = values("qwen3-30b-a3b-base", routing_replay=mode)
    assert found[f"{ACTOR}.megatron.router_replay.mode"] == mode
    assert found[f"{ROLLOUT}.enable_rollout_routing_replay"] == of_rollout
    assert found["actor_rollout_ref.model.use_remove_padding"] == "True"
    assert found[f"{ACTOR}.megatron.use_remove_padding"] == "True"


def test_losses_beside_the_objective(values):
    found = values(
        kl_coefficient=0.001, entropy_coefficient=0.01, loss_aggregation="seq-mean-token-sum-norm"
    )
    assert found[f"{ACTOR}.use_kl_loss"] == "True"
    assert found[f"{ACTOR}.kl_loss_coef"] == "0.001"
    assert found[f"{ACTOR}.kl_loss_type"] == "low_var_kl"
    assert found[f"{ACTOR}.entropy_coeff"] == "0.01"
    assert found[f"{ACTOR}.loss_agg_mode"] == "seq-mean-token-sum-norm"
    assert found[f"{ACTOR}.loss_scale_factor"] == "15360"


def test_no_dual_clip_is_null(values):
    assert values(method="grpo")[f"+{ACTOR}.policy_loss.dual_clip"] == "null"


def test_thinking_is_switched_off_where_the_model_says_so(values):
    assert values("qwen3-4b")["+data.apply_chat_template_kwargs.enable_thinking"] == "False"


def test_overrides_of_policy_and_resources_come_last(verl_run):
    run, resources = verl_run(
        model_changes={
            "verl_overrides": ["+a.b=1"],
            "resources.verl_overrides": ["trainer.logger_x=[x]", "~c"],
        }
    )
    assert run.model.verl_overrides == ["+a.b=1"]
    expected = ["+a.b=1", "trainer.logger_x=[x]", "~c"]
    assert verl_options(run, resources, PATHS)[-3:] == expected


@pytest.mark.parametrize(
    "override",
    [
        f"{ROLLOUT}.n=4",
        f"++{ROLLOUT}.n=4",
        f"~{ROLLOUT}.n",
        "~data",
        f"{ACTOR}.optim={{lr: 1}}",
        f"+{ACTOR}.policy_loss.beta_pos=1",
        "model_engine=megatron",
        # What has no option of its own: resuming, code of a model, the meaning of other keys.
        "trainer.max_actor_ckpt_to_keep=1",
        f"{ACTOR}.checkpoint.save_contents=[model]",
        "actor_rollout_ref.model.trust_remote_code=True",
        f"{ROLLOUT}.response_length=5",
        "+data.apply_chat_template_kwargs.enable_thinking=True",
    ],
)
def test_an_override_of_what_the_run_decides_is_refused(verl_run, override):
    run, resources = verl_run(model_changes={"verl_overrides": [override]})
    with pytest.raises(UserError, match=r"verl_overrides: .* follows from other keys"):
        verl_options(run, resources, PATHS)


def test_a_local_run_has_no_options(verl_study, verl_run):
    _, resources = verl_run()
    resolved = verl_study(models=["qwen3-tiny"], mini_batch=8)
    run = resolved.run_config(resolved.runs()[0], "")
    with pytest.raises(UserError, match=r"model\.backend: is local"):
        verl_options(run, resources, PATHS)


# --- the command ----------------------------------------------------------------------------------


@pytest.fixture
def command(verl_study, verl_run, tmp_path, monkeypatch, capsys):
    """Return a function that runs the command on a run folder and gives its lines."""
    run, _ = verl_run()
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.yaml").write_text(canonical(run.model_dump(mode="json")))

    def call(model="qwen3-1.7b-base"):
        path = verl_study.config / "models" / f"{model}.yaml"
        arguments = ["--config", folder / "config.yaml", "--model", path, "--weights", tmp_path]
        monkeypatch.setattr("sys.argv", ["options", *map(str, arguments)])
        options.main()
        return capsys.readouterr().out.splitlines()

    return call


def test_the_command_prints_one_option_per_line(command, tmp_path):
    lines = command()
    assert f"actor_rollout_ref.model.path={tmp_path}" in lines
    assert f"data.train_files={tmp_path / 'run' / 'verl' / 'prompts.parquet'}" in lines
    assert all(line.count("=") >= 1 for line in lines)


@pytest.mark.parametrize(
    ("model", "expected"),
    [("qwen3-tiny", "backend: is local"), ("qwen3-4b", "is not the model of")],
)
def test_the_command_wants_the_runs_own_model(command, model, expected):
    with pytest.raises(SystemExit, match=expected):
        command(model)


def test_the_file_may_differ_in_what_only_places_the_work(command, verl_study):
    path = verl_study.config / "models" / "qwen3-1.7b-base.yaml"
    model = yaml.safe_load(path.read_text())
    model["resources"]["nodes"] = 2
    path.write_text(yaml.safe_dump(model))
    assert "trainer.nnodes=2" in command()


def test_verls_own_loggers_come_beside_ours(verl_run):
    run, resources = verl_run()
    assert "trainer.logger=[console,file]" in verl_options(run, resources, PATHS)
    given = verl_options(run, resources, PATHS, ["wandb", "tensorboard"])
    assert "trainer.logger=[console,file,wandb,tensorboard]" in given


def test_options_of_the_study_come_between_those_of_the_model(verl_run):
    run, resources = verl_run(verl_overrides=["trainer.x=2"])
    resources = resources.model_copy(update={"verl_overrides": ["trainer.x=3"]})
    assert verl_options(run, resources, PATHS)[-2:] == ["trainer.x=2", "trainer.x=3"]
