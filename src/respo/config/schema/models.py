"""`config/models`: policies and what their jobs need."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from respo.config.schema.types import (
    Fraction,
    Label,
    Name,
    Penalty,
    Positive,
    PositiveFloat,
    Strict,
    VerlOverrides,
    WholeNumber,
)

if TYPE_CHECKING:
    from respo.config.schema.studies import Training


class Architecture(Strict):
    """Sizes of a Qwen3 policy, named as in transformers' configuration."""

    model_type: Literal["qwen3", "qwen3_moe"] = Field(description="dense or mixture of experts")
    hidden_size: Positive = Field(description="width of the residual stream")
    num_hidden_layers: Positive = Field(description="number of layers")
    num_attention_heads: Positive = Field(description="query heads")
    num_key_value_heads: Positive = Field(description="key and value heads")
    head_dim: Positive = Field(description="width of a head; even")
    intermediate_size: Positive = Field(
        description="width of the feed-forward layer (of an expert)"
    )
    num_experts: Positive | None = Field(default=None, description="experts; `qwen3_moe` only")
    num_experts_per_tok: Positive | None = Field(
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
    learning_rate: PositiveFloat = Field(description="peak rate; cosine decay after a warm-up")
    direct: Fraction = Field(description="share of demonstrations without reasoning")
    corrupted: Fraction = Field(description="share of reasoning steps with a random result")
    seed: int = Field(ge=0, lt=2**31, description="seed of weights and demonstrations")


class LengthPenalty(Strict):
    """The penalty of long responses, where a file sets its own."""

    overlong_buffer: WholeNumber | None = Field(
        default=None, description="instead of the study's (a method's goes before a model's)"
    )
    overlong_factor: Penalty | None = Field(
        default=None, description="instead of the study's (a method's goes before a model's)"
    )


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


class EvaluationEstimate(Strict):
    """What an evaluation of the model costs, for `python -m respo.plan`; nothing else reads it."""

    weights_gb: PositiveFloat = Field(description="disk of the weights of a checkpoint, GB")
    responses_per_second: PositiveFloat = Field(
        description="responses of an evaluation job per second"
    )


class Estimate(EvaluationEstimate):
    """What a run of the model costs."""

    update_seconds: PositiveFloat = Field(description="wall time of a policy update, seconds")
    state_gb: PositiveFloat = Field(description="disk of a state that training continues from, GB")


class Resources(Strict):
    """What a training job of the model asks of the machine."""

    memory_mb: Positive = Field(description="memory of a training job, MB (of each node)")
    minutes: Positive = Field(description="longest wall time of a training job, minutes")
    estimate: Estimate | None = Field(
        default=None, description="what a run costs, for `python -m respo.plan`"
    )


class Parallelism(Strict):
    """How the GPUs share the work; those left out are 1."""

    sequence: Positive = Field(default=1, description="Ulysses sequence parallel; `fsdp` only")
    tensor: Positive = Field(default=1, description="tensor parallel; `megatron` only")
    pipeline: Positive = Field(default=1, description="pipeline parallel; `megatron` only")
    context: Positive = Field(default=1, description="context parallel; `megatron` only")
    expert: Positive = Field(default=1, description="expert parallel; `megatron` only")
    expert_tensor: Positive = Field(
        default=1, description="tensor parallel within an expert; `megatron` only"
    )
    rollout_tensor: Positive = Field(default=1, description="tensor parallel of vLLM")


class VerlResources(Resources):
    """Where and how a job of verl runs; none of it trains anew."""

    nodes: Positive = Field(description="nodes of a training job")
    gpus_per_node: Positive = Field(description="GPUs of each node")
    parallelism: Parallelism = Field(description="how the GPUs share the work")
    tokens_per_gpu: Positive = Field(
        description="most tokens of a micro-batch on a GPU; times `sequence` or `context` at least "
        "a whole prompt and response"
    )
    offload: bool = Field(
        default=False, description="weights and optimizer wait in main memory while vLLM samples"
    )
    rollout_memory: Annotated[float, Field(gt=0, lt=1)] = Field(
        description="share of the GPU memory for vLLM"
    )
    keep_last: Positive = Field(
        default=1, description="states kept to continue from while the run is trained"
    )
    silent_minutes: PositiveFloat = Field(
        default=30.0, description="a trainer without any output for so long hangs, and is killed"
    )
    stuck_minutes: PositiveFloat = Field(
        default=240.0, description="and so does one without a policy update for so long"
    )
    verl_overrides: VerlOverrides = Field(
        default=[], description="further options of verl (Hydra) that only place the work"
    )

    @property
    def gpus(self) -> int:
        """GPUs of a job."""
        return self.nodes * self.gpus_per_node

    @model_validator(mode="after")
    def _divisible(self) -> Self:
        sizes = self.parallelism
        for name, size, whole in (
            ("sequence", sizes.sequence, self.gpus),
            (
                "tensor x pipeline x context",
                sizes.tensor * sizes.pipeline * sizes.context,
                self.gpus,
            ),
            (
                "expert x expert_tensor x pipeline",
                sizes.expert * sizes.expert_tensor * sizes.pipeline,
                self.gpus,
            ),
            ("rollout_tensor", sizes.rollout_tensor, self.gpus_per_node),
        ):
            if whole % size:
                of = "of a node" if name == "rollout_tensor" else "of the job"
                raise ValueError(f"parallelism: {name} = {size} does not divide {whole} GPUs {of}")
        return self


class LocalModel(LengthPenalty, LocalPolicy):
    """`config/models/NAME.yaml` with `backend: local`: a policy and what its jobs need."""

    label: Label = Field(description="name in tables and figures")
    resources: Resources = Field(description="needs of a training job")

    @property
    def policy(self) -> LocalPolicy:
        """What training depends on."""
        return LocalPolicy(**{key: getattr(self, key) for key in LocalPolicy.model_fields})


class VerlModel(LengthPenalty, VerlPolicy):
    """`config/models/NAME.yaml` with `backend: verl`: a policy and where its jobs run."""

    label: Label = Field(description="name in tables and figures")
    resources: VerlResources = Field(description="needs of a training job")

    @property
    def policy(self) -> VerlPolicy:
        """What training depends on."""
        return VerlPolicy(**{key: getattr(self, key) for key in VerlPolicy.model_fields})

    @property
    def data_parallel(self) -> int:
        """The number of ranks that a mini-batch is divided among."""
        sizes = self.resources.parallelism
        if self.engine == "fsdp":
            return self.resources.gpus // sizes.sequence
        return self.resources.gpus // (sizes.tensor * sizes.pipeline * sizes.context)

    @model_validator(mode="after")
    def _placed(self) -> Self:
        sizes = self.resources.parallelism
        foreign = {
            "fsdp": ("tensor", "pipeline", "context", "expert", "expert_tensor"),
            "megatron": ("sequence",),
        }
        for name in foreign[self.engine]:
            if getattr(sizes, name) != 1:
                raise ValueError(
                    f"resources.parallelism.{name}: engine {self.engine} has none; leave it out"
                )
        if not self.mixture_of_experts and (sizes.expert, sizes.expert_tensor) != (1, 1):
            raise ValueError(
                "resources.parallelism.expert, expert_tensor: only for a mixture of experts"
            )
        longest = self.max_prompt_tokens + self.max_response_tokens
        budget = self.resources.tokens_per_gpu * sizes.sequence * sizes.context
        if budget < longest:
            raise ValueError(
                f"resources.tokens_per_gpu: {self.resources.tokens_per_gpu} is too few for a "
                f"prompt and response of {longest} tokens; raise it, or sequence or context"
            )
        return self

    def impossible_options(self, training: "Training", staleness: int) -> dict[str, str]:
        """Return also the options that these GPUs cannot train with."""
        problems = super().impossible_options(training, staleness)
        responses = training.mini_batch * training.rollouts_per_prompt
        if responses % self.data_parallel:
            problems["mini_batch"] = (
                f"{training.mini_batch} prompts of {training.rollouts_per_prompt} responses do "
                f"not divide among {self.data_parallel} data-parallel ranks; change mini_batch or "
                f"the model's resources"
            )
        return problems


class VllmResources(Strict):
    """What an evaluation job of a published model asks of the machine."""

    gpus: Positive = Field(description="GPUs of a job, all of one node (tensor parallel)")
    memory_mb: Positive = Field(description="memory of a job, MB")
    minutes: Positive = Field(description="longest wall time of a job, minutes")
    estimate: EvaluationEstimate | None = Field(
        default=None, description="what a job costs, for `python -m respo.plan`"
    )


class VllmModel(Strict):
    """`config/models/NAME.yaml` with `backend: vllm`: evaluated as it is, never trained."""

    backend: Literal["vllm"] = Field(description="no trainer: a baseline of a study")
    checkpoint: Checkpoint = Field(description="the weights")
    thinking: bool | None = Field(
        description="thinking mode of the chat template; null: it knows none"
    )
    max_prompt_tokens: Positive = Field(description="longer prompts are an error")
    max_response_tokens: Positive = Field(description="responses are cut here and flagged")
    label: Label = Field(description="name in tables and figures")
    resources: VllmResources = Field(description="needs of an evaluation job")


Model = Annotated[LocalModel | VerlModel | VllmModel, Field(discriminator="backend")]
