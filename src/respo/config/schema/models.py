"""`config/models`: policies and what their jobs need."""

from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from respo.config.schema.policies import Checkpoint, LocalPolicy, VerlPolicy
from respo.config.schema.resources import Resources, VerlResources, VllmResources
from respo.config.schema.types import Label, Penalty, Positive, Strict, WholeNumber

if TYPE_CHECKING:
    from respo.config.schema.studies import Training


class LengthPenalty(Strict):
    """The penalty of long responses, where a file sets its own."""

    overlong_buffer: WholeNumber | None = Field(
        default=None, description="instead of the study's (a method's goes before a model's)"
    )
    overlong_factor: Penalty | None = Field(
        default=None, description="instead of the study's (a method's goes before a model's)"
    )


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
