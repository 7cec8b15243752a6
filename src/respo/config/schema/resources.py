"""Resources of `config/models`: where and how jobs run; nothing here changes a result."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from respo.config.schema.types import Positive, PositiveFloat, Strict, VerlOverrides


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


class VllmResources(Strict):
    """What an evaluation job of a published model asks of the machine."""

    gpus: Positive = Field(description="GPUs of a job, all of one node (tensor parallel)")
    memory_mb: Positive = Field(description="memory of a job, MB")
    minutes: Positive = Field(description="longest wall time of a job, minutes")
    estimate: EvaluationEstimate | None = Field(
        default=None, description="what a job costs, for `python -m respo.plan`"
    )
