"""`python -m respo.training.verl.options`: a run as options of verl 0.9.1, one per line.

Each line is an argument of `python -m verl.trainer.main_ppo` (Hydra). What verl calls otherwise:

- A step of verl is a rollout batch, N policy updates. Its warm-up, checkpoints and total count
  those: the warm-up is `warmup_updates // N` steps of the learning rate, which is 0 throughout the
  first rollout batch if there is any.
- The order of the prompts, and with it the seed's part in it, is in the file that
  `respo.training.verl.prompts` writes; the seed also goes to vLLM.
- Updates take the responses of a rollout batch in the order of their prompts
  (`respo.training.verl.sampler`), on any number of ranks (`respo.training.verl.balance`).
"""

import argparse
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from respo.cli import UserError, command
from respo.config import load_model, load_run_config
from respo.config.schema import RunConfig, VerlModel, VerlPolicy, VerlResources
from respo.training.verl.names import PLUGIN, class_name, loss_mode

ACTOR, ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
REWARD = "pkg://respo.training.verl.reward"
SAMPLER = "pkg://respo.training.verl.sampler"
# verl stops at the first of two limits; the number of steps is the one that counts.
EPOCHS = 1_000_000
PLAIN = re.compile(r"[A-Za-z0-9_./:-]+")
# Text that Hydra would read as something else.
WORDS = re.compile(r"(true|false|null|nan|inf|[-+]?[0-9_.]+(e[-+]?[0-9]+)?)", re.IGNORECASE)

# What other keys decide without an option of their own, what keeps and resumes checkpoints, and
# what would execute code that comes with a model or a file.
RESERVED = (
    "actor_rollout_ref.model.external_lib",
    "actor_rollout_ref.model.trust_remote_code",
    f"{ACTOR}.checkpoint",
    f"{ACTOR}.optim.total_training_steps",
    f"{ROLLOUT}.do_sample",
    f"{ROLLOUT}.ignore_eos",
    f"{ROLLOUT}.prompt_length",
    f"{ROLLOUT}.response_length",
    "data.apply_chat_template_kwargs",
    "data.custom_cls",
    "data.filter_overlong_prompts",
    "data.sampler",
    "data.seed",
    "data.trust_remote_code",
    "trainer.del_local_ckpt_after_load",
    "trainer.max_actor_ckpt_to_keep",
    "trainer.resume_from_path",
)

Options = Iterator[tuple[str, Any]]


@dataclass(frozen=True)
class Paths:
    """What a run reads and where it writes."""

    run: Path  # the run folder
    weights: Path  # the initial weights, in Hugging Face's format

    @property
    def prompts(self) -> Path:
        """The prompts in the order of the run."""
        return self.run / "verl" / "prompts.parquet"

    @property
    def checkpoints(self) -> Path:
        """The folder of verl's own checkpoints."""
        return self.run / "verl" / "checkpoints"


def verl_options(
    run: RunConfig, resources: VerlResources, paths: Paths, loggers: Sequence[str] = ()
) -> list[str]:
    """Return the options of verl for a run.

    Args:
        run: what is trained.
        resources: where and how.
        paths: what is read and written.
        loggers: those of verl that are reported to as well.

    Raises:
        UserError: the model is not one for verl, or an override sets what the run decides.
    """
    model = run.model
    if not isinstance(model, VerlPolicy):
        raise UserError("model.backend: is local; `python -m respo.training.local` trains this run")
    options = {"model_engine": "dp" if model.engine == "fsdp" else "megatron"}
    for part in (
        _data(run, model, paths),
        _objective(run),
        _reward(run, model),
        _updates(run, model),
        _rollout(run, model, resources),
        _parallelism(model, resources),
        _trainer(run, resources, paths, loggers),
    ):
        options |= {key: _text(value) for key, value in part}
    own = [*model.verl_overrides, *run.training.verl_overrides, *resources.verl_overrides]
    _check_overrides(options, own)
    return [f"{key}={value}" for key, value in options.items()] + own


def check_overrides(run: RunConfig, resources: VerlResources) -> None:
    """Raise UserError if an override of a run sets what the run decides. Needs no verl."""
    verl_options(run, resources, Paths(Path("run"), Path("weights")))


def _data(run: RunConfig, model: VerlPolicy, paths: Paths) -> Options:
    yield "data.train_files", str(paths.prompts)
    # verl wants a validation set even if it never validates.
    yield "data.val_files", str(paths.prompts)
    yield "data.val_max_samples", 1
    yield "data.shuffle", False
    yield "data.train_batch_size", run.staleness * run.training.mini_batch
    yield "data.max_prompt_length", model.max_prompt_tokens
    yield "data.max_response_length", model.max_response_tokens
    yield "data.truncation", "error"
    if model.thinking is not None:
        yield "+data.apply_chat_template_kwargs.enable_thinking", model.thinking


def _objective(run: RunConfig) -> Options:
    objective = run.objective.objective
    yield "algorithm.adv_estimator", "grpo"
    yield "algorithm.norm_adv_by_std_in_grpo", True
    yield "algorithm.use_kl_in_reward", False
    yield "critic.enable", False
    yield f"{ACTOR}.policy_loss.loss_mode", loss_mode(objective)
    yield f"{ACTOR}.policy_loss._target_", f"{PLUGIN}.{class_name(objective)}"
    for name, value in run.objective.parameters.items():
        yield f"+{ACTOR}.policy_loss.{name}", value
    # A metric of every run; `respo.training.verl.entropy` keeps it cheap.
    yield f"{ACTOR}.calculate_entropy", True


def _reward(run: RunConfig, model: VerlPolicy) -> Options:
    yield "reward.custom_reward_function.path", REWARD
    yield "reward.custom_reward_function.name", "compute_score"
    yield "+reward.custom_reward_function.reward_kwargs.verifier", run.training.reward
    yield "reward.reward_manager.name", "dapo"
    if run.training.overlong_buffer:
        buffer = "+reward.reward_kwargs.overlong_buffer_cfg"
        yield f"{buffer}.enable", True
        yield f"{buffer}.len", run.training.overlong_buffer
        yield f"{buffer}.penalty_factor", run.training.overlong_factor
        yield f"{buffer}.log", True
        yield "+reward.reward_kwargs.max_resp_len", model.max_response_tokens


def _updates(run: RunConfig, model: VerlPolicy) -> Options:
    training, optimizer = run.training, run.training.optimizer
    # verl multiplies by the responses per prompt itself.
    yield f"{ACTOR}.ppo_mini_batch_size", training.mini_batch
    yield f"{ACTOR}.ppo_epochs", 1
    yield f"{ACTOR}.shuffle", False
    yield f"{ACTOR}.loss_agg_mode", training.loss_aggregation
    # Of seq-mean-token-sum-norm; verl's default is the longest response of a micro-batch.
    yield f"{ACTOR}.loss_scale_factor", model.max_response_tokens
    yield f"{ACTOR}.entropy_coeff", training.entropy_coefficient
    yield f"{ACTOR}.use_kl_loss", training.kl_coefficient > 0
    yield f"{ACTOR}.kl_loss_coef", training.kl_coefficient
    yield f"{ACTOR}.kl_loss_type", "low_var_kl"
    yield f"{ACTOR}.optim.lr", optimizer.learning_rate
    yield f"{ACTOR}.optim.lr_warmup_steps", optimizer.warmup_updates // run.staleness
    yield f"{ACTOR}.optim.lr_warmup_steps_ratio", 0.0
    yield f"{ACTOR}.optim.weight_decay", optimizer.weight_decay
    yield f"{ACTOR}.optim.clip_grad", optimizer.gradient_clip
    if model.engine == "fsdp":
        yield f"{ACTOR}.optim.optimizer", "AdamW"
        yield f"{ACTOR}.optim.lr_scheduler_type", "constant"
        yield f"{ACTOR}.optim.betas", optimizer.betas
        yield f"{ACTOR}.fsdp_config.model_dtype", model.master_weights
    else:
        yield f"{ACTOR}.optim.optimizer", "adam"
        yield f"{ACTOR}.optim.lr_decay_style", "constant"
        # verl 0.9.1 does not hand optim.betas on to Megatron.
        yield f"+{ACTOR}.optim.override_optimizer_config.adam_beta1", optimizer.betas[0]
        yield f"+{ACTOR}.optim.override_optimizer_config.adam_beta2", optimizer.betas[1]
        replay = training.routing_replay
        yield f"{ACTOR}.megatron.router_replay.mode", "disabled" if replay == "none" else replay
        yield f"{ROLLOUT}.enable_rollout_routing_replay", replay == "R3"


def _rollout(run: RunConfig, model: VerlPolicy, resources: VerlResources) -> Options:
    yield f"{ROLLOUT}.name", "vllm"
    yield f"{ROLLOUT}.n", run.training.rollouts_per_prompt
    # Of the log-probabilities in the loss as well.
    yield f"{ROLLOUT}.temperature", run.training.temperature
    yield f"{ROLLOUT}.top_p", 1.0
    yield f"{ROLLOUT}.top_k", -1
    yield f"{ROLLOUT}.seed", run.seed
    yield f"{ROLLOUT}.max_model_len", model.max_prompt_tokens + model.max_response_tokens
    yield f"{ROLLOUT}.tensor_model_parallel_size", resources.parallelism.rollout_tensor
    yield f"{ROLLOUT}.gpu_memory_utilization", resources.rollout_memory


def _parallelism(model: VerlPolicy, resources: VerlResources) -> Options:
    sizes = resources.parallelism
    yield f"{ACTOR}.use_dynamic_bsz", True
    yield f"{ACTOR}.ppo_max_token_len_per_gpu", resources.tokens_per_gpu
    yield "actor_rollout_ref.model.use_remove_padding", True
    if model.engine == "fsdp":
        yield f"{ACTOR}.strategy", "fsdp2"
        yield f"{ACTOR}.ulysses_sequence_parallel_size", sizes.sequence
        yield f"{ACTOR}.fsdp_config.param_offload", resources.offload
        yield f"{ACTOR}.fsdp_config.optimizer_offload", resources.offload
        yield "actor_rollout_ref.ref.fsdp_config.param_offload", resources.offload
        return
    megatron = f"{ACTOR}.megatron"
    yield f"{megatron}.tensor_model_parallel_size", sizes.tensor
    yield f"{megatron}.pipeline_model_parallel_size", sizes.pipeline
    yield f"{megatron}.context_parallel_size", sizes.context
    yield f"{megatron}.expert_model_parallel_size", sizes.expert
    yield f"{megatron}.expert_tensor_parallel_size", sizes.expert_tensor
    yield f"{megatron}.param_offload", resources.offload
    yield f"{megatron}.optimizer_offload", resources.offload
    yield f"{megatron}.use_remove_padding", True
    # mbridge; Megatron-Bridge, verl's default, is not to be had from the package index.
    yield f"{megatron}.use_mbridge", True
    yield f"{megatron}.vanilla_mbridge", True
    # Or the warm-up begins again where a run is continued.
    yield f"{ACTOR}.optim.use_checkpoint_opt_param_scheduler", True


def _trainer(
    run: RunConfig, resources: VerlResources, paths: Paths, loggers: Sequence[str]
) -> Options:
    training = run.training
    yield "actor_rollout_ref.model.path", str(paths.weights)
    yield "trainer.use_v1", True
    yield "trainer.v1.trainer_mode", "sync"
    yield "trainer.v1.sampler.custom_sampler.path", SAMPLER
    yield "trainer.v1.sampler.custom_sampler.name", "PromptOrder"
    yield "trainer.nnodes", resources.nodes
    yield "trainer.n_gpus_per_node", resources.gpus_per_node
    yield "trainer.total_training_steps", training.updates // run.staleness
    yield "trainer.total_epochs", EPOCHS
    # verl knows one distance between checkpoints, and saves after the last step in any case.
    yield "trainer.save_freq", math.gcd(*training.checkpoints) // run.staleness
    yield "trainer.test_freq", -1
    yield "trainer.val_before_train", False
    yield "trainer.resume_mode", "auto"
    yield "trainer.default_local_dir", str(paths.checkpoints)
    yield "trainer.logger", ["console", "file", *loggers]
    # Or Hydra makes a folder `outputs` where the trainer is started.
    yield "hydra.run.dir", str(paths.run / "verl" / "hydra")
    yield "trainer.project_name", "respo"
    yield "trainer.experiment_name", "-".join(paths.run.parts[-4:])


def _text(value: Any) -> str:
    """Write a value such that Hydra reads it as what it is."""
    if value is None:
        return "null"
    if isinstance(value, list):
        return f"[{','.join(map(_text, value))}]"
    if not isinstance(value, str):
        return str(value)
    if PLAIN.fullmatch(value) and not WORDS.fullmatch(value):
        return value
    # A backslash before a quote is Hydra's, and ${ begins an interpolation.
    quoted = re.sub(r"(\\*)'", r"\1\1\\'", value)
    quoted = re.sub(r"(\\+)$", r"\1\1", quoted).replace("${", "\\${")
    return f"'{quoted}'"


def _check_overrides(options: dict[str, str], overrides: list[str]) -> None:
    """Refuse overrides of what other keys decide: the run would not be what it says."""
    decided = {key.lstrip("+") for key in options} | set(RESERVED)
    for override in overrides:
        key = re.match(r"[+~]*([^=]*)", override)[1]  # type: ignore[index]
        for other in decided:
            if other == key or f"{other}.".startswith(f"{key}.") or key.startswith(f"{other}."):
                raise UserError(
                    f"verl_overrides: {override!r}: {other} follows from other keys of the study, "
                    f"method or model; change those"
                )


@command
def main() -> None:
    """Print the options of a run."""
    parser = argparse.ArgumentParser(
        prog="python -m respo.training.verl.options",
        description="Print the options of verl for a run, one per line.",
    )
    parser.add_argument("--config", type=Path, required=True, help="config.yaml of the run folder")
    parser.add_argument(
        "--model", type=Path, required=True, help="the model's file, for its resources"
    )
    parser.add_argument("--weights", type=Path, required=True, help="folder of the initial weights")
    arguments = parser.parse_args()
    run = load_run_config(arguments.config)
    model = load_model(arguments.model)
    if not isinstance(model, VerlModel):
        raise UserError(f"{arguments.model}: backend: is local; options are for verl")
    if model.policy != run.model:
        raise UserError(
            f"{arguments.model}: is not the model of {arguments.config}; name its file, or make "
            f"config.yaml anew"
        )
    paths = Paths(run=arguments.config.absolute().parent, weights=arguments.weights.absolute())
    print("\n".join(verl_options(run, model.resources, paths)))


if __name__ == "__main__":
    main()
