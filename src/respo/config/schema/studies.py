"""`config/studies`."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from respo.config.schema.methods import Aggregation, RoutingReplay
from respo.config.schema.types import (
    Coefficient,
    Counts,
    FigureId,
    Label,
    Name,
    Names,
    Penalty,
    Positive,
    PositiveFloat,
    Rounds,
    Seeds,
    Strict,
    TableId,
    WholeNumber,
    _distinct,
)


class Optimizer(Strict):
    """AdamW at a constant learning rate."""

    learning_rate: PositiveFloat = Field(description="constant after the warm-up")
    warmup_updates: int = Field(ge=0, description="updates of linear warm-up; 0 for none")
    betas: Annotated[
        list[Annotated[float, Field(ge=0, lt=1)]], Field(min_length=2, max_length=2)
    ] = Field(description="decay of the two moments")
    weight_decay: float = Field(ge=0, allow_inf_nan=False, description="decoupled weight decay")
    gradient_clip: PositiveFloat = Field(description="largest norm of the gradient")


class Training(Strict):
    """The settings that all runs of a study share."""

    updates: Positive = Field(description="policy updates of a run")
    mini_batch: Positive = Field(description="M, prompts per update")
    rollouts_per_prompt: int = Field(
        ge=2, description="G, responses per prompt; a group of one has no advantage"
    )
    temperature: PositiveFloat = Field(
        description="of rollouts and of the log-probabilities in the loss alike"
    )
    loss_aggregation: Aggregation = Field(description="how token losses become one number")
    kl_coefficient: Coefficient = Field(
        default=0.0,
        description="weight of the KL loss (k3) against the initial weights; 0 for none",
    )
    entropy_coefficient: Coefficient = Field(
        default=0.0, description="weight of the entropy that the loss rewards; 0 for none"
    )
    dynamic_sampling: Rounds = Field(
        default=0,
        description="most rounds in which groups without spread are replaced by fresh ones; 0 off",
    )
    overlong_buffer: WholeNumber = Field(
        default=0,
        description="tokens before the response limit in which a penalty grows; 0 for none",
    )
    overlong_factor: Penalty = Field(
        default=1.0, description="the penalty at the limit; needs `overlong_buffer`"
    )
    routing_replay: RoutingReplay = Field(
        default="none",
        description="experts in an update: the router's own choice, or that of the rollout in the "
        "trainer (`R2`) or the sampler (`R3`); `qwen3_moe` only",
    )
    optimizer: Optimizer = Field(description="AdamW")
    checkpoints: Counts = Field(description="updates whose weights are kept for evaluation")

    @model_validator(mode="after")
    def _checkpoints_exist(self) -> Self:
        late = [update for update in self.checkpoints if update > self.updates]
        if late:
            raise ValueError(f"checkpoints: {late[0]} comes after the last update {self.updates}")
        return self


class Evaluation(Strict):
    """How the responses of a benchmark are sampled."""

    updates: Counts = Field(description="checkpoints to evaluate; tables show the last one")
    temperature: PositiveFloat = Field(description="sampling temperature")
    top_p: Annotated[float, Field(gt=0, le=1)] = Field(description="nucleus sampling mass; 1.0 off")
    seed: int = Field(ge=0, lt=2**31, description="seed of the samples")


class ExtraRuns(Strict):
    """A further block of runs beside the grid."""

    methods: Names = Field(description="as in the study")
    staleness: Counts = Field(description="as in the study")
    models: Names | None = Field(default=None, description="the study's models if left out")
    seeds: Seeds | None = Field(default=None, description="the study's seeds if left out")


class Study(Training):
    """`config/studies/NAME.yaml`: the grid methods x models x staleness x seeds."""

    title: Label = Field(description="heads the report")
    methods: Names = Field(description="files of config/methods, in the order of the tables")
    models: Names = Field(description="files of config/models")
    staleness: Counts = Field(
        description="N, updates per rollout batch, all with the same behaviour policy"
    )
    seeds: Seeds = Field(description="seeds of the runs")
    extra_runs: list[ExtraRuns] = Field(default=[], description="runs beside the grid")
    train_data: Name = Field(description="a file of config/datasets")
    benchmarks: Names = Field(description="files of config/benchmarks, the columns of the tables")
    evaluation: Evaluation = Field(description="how benchmarks are sampled")
    tables: Annotated[list[TableId], AfterValidator(_distinct)] = Field(
        description="tables to make"
    )
    figures: Annotated[list[FigureId], AfterValidator(_distinct)] = Field(
        description="figures to make"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for n in [*self.staleness, *(n for extra in self.extra_runs for n in extra.staleness)]:
            if self.updates % n:
                raise ValueError(
                    f"staleness: {n} does not divide updates {self.updates}; a rollout batch "
                    f"would be cut short"
                )
        for update in self.evaluation.updates:
            if update not in self.checkpoints:
                raise ValueError(
                    f"evaluation.updates: {update} is not in checkpoints {self.checkpoints}"
                )
        return self
