"""Policies of `config/models`: all that training or responses depend on."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from respo.config.schema.types import (
    Fraction,
    LearningRate,
    Name,
    Positive,
    Seed,
    Size,
    Strict,
    VerlOverrides,
)

if TYPE_CHECKING:
    from respo.config.schema.studies import Training


class Architecture(Strict):
    """Sizes of a Qwen3 policy, named as in transformers' configuration."""

    model_type: Literal["qwen3", "qwen3_moe"] = Field(description="dense or mixture of experts")
    hidden_size: Size = Field(description="width of the residual stream")
    num_hidden_layers: Size = Field(description="number of layers")
    num_attention_heads: Size = Field(description="query heads")
    num_key_value_heads: Size = Field(description="key and value heads")
    head_dim: Size = Field(description="width of a head; even")
    intermediate_size: Size = Field(description="width of the feed-forward layer (of an expert)")
    num_experts: Size | None = Field(default=None, description="experts; `qwen3_moe` only")
    num_experts_per_tok: Size | None = Field(
        default=None, description="experts that each token uses; `qwen3_moe` only"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.num_attention_heads % self.num_key_value_heads:
            raise ValueError(
                f"num_key_value_heads: {self.num_key_value_heads} does not divide "
                f"num_attention_heads {self.num_attention_heads}"
            )
        if self.head_dim % 2:
            raise ValueError(f"head_dim: {self.head_dim} is odd; rotary embeddings need it even")
        experts = (self.num_experts, self.num_experts_per_tok)
        if self.model_type == "qwen3" and experts != (None, None):
            raise ValueError("num_experts, num_experts_per_tok: only for model_type qwen3_moe")
        if self.model_type == "qwen3_moe":
            if None in experts:
                raise ValueError("qwen3_moe needs num_experts and num_experts_per_tok")
            if self.num_experts_per_tok > self.num_experts:  # type: ignore[operator]
                raise ValueError("num_experts_per_tok: is greater than num_experts")
        return self


class WarmStart(Strict):
    """Supervised steps from random weights; every run of the model starts from their result."""

    data: Name = Field(description="demonstrations are of prompts of this data set")
    steps: Positive = Field(description="supervised steps")
    batch: Positive = Field(description="demonstrations per step")
    learning_rate: LearningRate = Field(description="peak rate; cosine decay after a warm-up")
    direct: Fraction = Field(description="share of demonstrations without reasoning")
    corrupted: Fraction = Field(description="share of reasoning steps with a random result")
    seed: Seed = Field(description="seed of weights and demonstrations")


class LocalPolicy(Strict):
    """A small policy that is made, trained and sampled on this machine.

    Every key changes the weights or the responses.
    """

    backend: Literal["local"] = Field(description="the trainer: torch on this machine")
    architecture: Architecture = Field(description="sizes of the network")
    warm_start: WarmStart = Field(description="how the common initial weights are made")
    max_prompt_tokens: Positive = Field(description="longer prompts are dropped and counted")
    max_response_tokens: Positive = Field(description="responses are cut here and flagged")

    def impossible_options(self, training: "Training", staleness: int) -> dict[str, str]:
        """Return the options that this trainer does not have, each with the reason and remedy."""
        problems = {}
        model_type = self.architecture.model_type
        if training.routing_replay != "none" and model_type != "qwen3_moe":
            problems["routing_replay"] = (
                f"{training.routing_replay!r} needs a mixture of experts, and model_type is "
                f"{model_type!r}; write none or train another model"
            )
        if training.verl_overrides:
            problems["verl_overrides"] = (
                f"{training.verl_overrides[0]!r} is for models of backend verl; remove it"
            )
        return problems


class Checkpoint(Strict):
    """Where the initial weights of a published model are: exactly one of `hub` and `path`."""

    hub: str | None = Field(
        default=None,
        pattern=r"^[\w.-]+/[\w.-]+$",
        description="`owner/name` on the Hugging Face hub; needs `revision`",
    )
    revision: str | None = Field(
        default=None,
        pattern=r"^[\w./-]+$",
        description="commit, tag or branch of the repository",
    )
    path: str | None = Field(
        default=None, min_length=1, description="a folder with the weights, instead of `hub`"
    )

    @property
    def folder(self) -> Path | None:
        """The folder of this machine; None if it is of the hub."""
        return Path(self.path).expanduser() if self.path else None

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.hub is None) == (self.path is None):
            raise ValueError("name either hub and revision, or path")
        if (self.hub is None) != (self.revision is None):
            raise ValueError("hub and revision belong together; add or remove one")
        return self


class VerlPolicy(Strict):
    """A published model that verl trains on GPUs.

    Every key changes the weights or the responses; what places the work is in `VerlResources`.
    """

    backend: Literal["verl"] = Field(description="the trainer: verl on one or more GPU nodes")
    checkpoint: Checkpoint = Field(description="the initial weights")
    thinking: bool | None = Field(
        description="`enable_thinking` of the chat template; null to leave it to the template"
    )
    mixture_of_experts: bool = Field(description="whether routing replay is possible")
    engine: Literal["fsdp", "megatron"] = Field(description="verl's training engine")
    master_weights: Literal["fp32", "bf16"] = Field(
        default="fp32",
        description="precision of the weights that the optimizer moves; `bf16` with `fsdp` only",
    )
    max_prompt_tokens: Positive = Field(description="longer prompts are dropped and counted")
    max_response_tokens: Positive = Field(description="responses are cut here and flagged")
    verl_overrides: VerlOverrides = Field(
        default=[], description="further options of verl (Hydra) that change the result"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.engine == "megatron" and self.master_weights != "fp32":
            raise ValueError(
                f"master_weights: {self.master_weights!r} is not possible with engine megatron, "
                f"which keeps them in fp32; leave the key out"
            )
        return self

    def impossible_options(self, training: "Training", staleness: int) -> dict[str, str]:
        """Return the options that this trainer does not have, each with the reason and remedy."""
        problems = {}
        replay = training.routing_replay
        if replay != "none" and not self.mixture_of_experts:
            problems["routing_replay"] = (
                f"{replay!r} needs a mixture of experts, and mixture_of_experts is false; write "
                f"none or train another model"
            )
        elif replay != "none" and self.engine != "megatron":
            problems["routing_replay"] = (
                f"{replay!r} needs engine megatron: verl replays no routing with {self.engine}"
            )
        if training.dynamic_sampling:
            problems["dynamic_sampling"] = (
                f"{training.dynamic_sampling} is not possible with verl, whose own form knows no "
                f"limit of rounds; write 0"
            )
        inside = [update for update in training.checkpoints if update % staleness]
        if inside:
            problems["checkpoints"] = (
                f"{inside[0]} lies inside a rollout batch of N = {staleness} updates, and verl "
                f"saves only between two; take multiples of {staleness}"
            )
        # verl moves the learning rate once per rollout batch.
        batches = training.updates // staleness
        warmup = training.optimizer.warmup_updates // staleness
        if warmup >= batches:
            problems["optimizer"] = (
                f"warmup_updates {training.optimizer.warmup_updates} lasts as long as the run; "
                f"lower it"
            )
        return problems


Policy = Annotated[LocalPolicy | VerlPolicy, Field(discriminator="backend")]
