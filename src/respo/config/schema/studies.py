"""`config/studies`."""

from typing import Annotated, Any, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from respo.config.schema.methods import Aggregation, RoutingReplay
from respo.config.schema.types import (
    Coefficient,
    Counts,
    FigureId,
    Label,
    LearningRate,
    Name,
    Names,
    Penalty,
    Positive,
    PositiveFloat,
    Rounds,
    Seed,
    Seeds,
    Strict,
    TableId,
    Temperature,
    TopP,
    Verifier,
    VerlOverrides,
    WholeNumber,
    _distinct,
)


class Optimizer(Strict):
    """AdamW at a constant learning rate."""

    learning_rate: LearningRate = Field(description="constant after the warm-up")
    warmup_updates: WholeNumber = Field(
        description="updates of linear warm-up; 0 for none; "
        "with verl as many whole rollout batches",
    )
    betas: Annotated[
        list[Annotated[float, Field(ge=0, lt=1)]], Field(min_length=2, max_length=2)
    ] = Field(description="decay of the two moments")
    weight_decay: Coefficient = Field(description="decoupled weight decay")
    gradient_clip: PositiveFloat = Field(description="largest norm of the gradient")


class Training(Strict):
    """The settings that all runs of a study share."""

    updates: Positive = Field(description="policy updates of a run")
    mini_batch: Positive = Field(description="M, prompts per update")
    rollouts_per_prompt: Annotated[Positive, Field(ge=2)] = Field(
        description="G, responses per prompt; a group of one has no advantage"
    )
    temperature: Temperature = Field(
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
    reward: Verifier = Field(
        default="strict_box",
        description="what decides on a response: +1 if it is right, else -1; `choice` and `code` "
        "go with training sets of sources `choices` and `programs`",
    )
    verl_overrides: VerlOverrides = Field(
        default=[], description="further options of verl (Hydra); models of backend `verl` only"
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
    temperature: Temperature = Field(description="sampling temperature")
    top_p: TopP = Field(description="nucleus sampling mass; 1.0 off")
    seed: Seed = Field(description="seed of the samples")
    samples: dict[Name, Positive] = Field(
        default={}, description="K by benchmark; the benchmark's own if left out"
    )
    max_response_tokens: Positive | None = Field(
        default=None, description="responses are cut here; the model's own limit if left out"
    )


class ExtraRuns(Strict):
    """A further block of runs beside the grid."""

    methods: Names = Field(description="as in the study")
    staleness: Counts = Field(description="as in the study")
    models: Names | None = Field(default=None, description="the study's models if left out")
    seeds: Seeds | None = Field(default=None, description="the study's seeds if left out")
    updates: Positive | None = Field(
        default=None,
        description="shorter runs: with the checkpoints before it, and that of the last update",
    )
    train_data: Name | None = Field(default=None, description="instead of the study's")
    verl_overrides: VerlOverrides = Field(default=[], description="beside the study's")
    evaluate: bool = Field(
        default=True, description="whether the runs are evaluated; needs the study's `updates`"
    )


# What a study may leave out if it trains nothing. Training has no say in its results.
UNTRAINED: dict[str, Any] = {
    "methods": [],
    "staleness": [1],
    "seeds": [0],
    "updates": 1,
    "mini_batch": 1,
    "rollouts_per_prompt": 2,
    "temperature": 1.0,
    "loss_aggregation": "token-mean",
    "optimizer": {
        "learning_rate": 1.0e-6,
        "warmup_updates": 0,
        "betas": [0.9, 0.999],
        "weight_decay": 0.0,
        "gradient_clip": 1.0,
    },
    "checkpoints": [1],
    "figures": [],
}


def _required_where_trained(schema: dict[str, Any]) -> None:
    """Have editors ask for the keys of training only where there are methods."""
    required = schema["required"]
    schema["required"] = [key for key in required if key not in (*UNTRAINED, "models")]
    schema["if"] = {"required": ["methods"], "properties": {"methods": {"minItems": 1}}}
    schema["then"] = {"required": [key for key in required if key not in schema["required"]]}


class Study(Training):
    """`config/studies/NAME.yaml`: the grid methods x models x staleness x seeds."""

    model_config = ConfigDict(json_schema_extra=_required_where_trained)

    title: Label = Field(description="heads the report")
    methods: Annotated[list[Name], AfterValidator(_distinct)] = Field(
        description="files of config/methods, in the order of the tables; [] or left out: nothing "
        "is trained, and `baselines` are evaluated"
    )
    models: Names = Field(description="files of config/models")
    staleness: Counts = Field(
        description="N, updates per rollout batch, all with the same behaviour policy"
    )
    seeds: Seeds = Field(description="seeds of the runs")
    extra_runs: list[ExtraRuns] = Field(default=[], description="runs beside the grid")
    baselines: Annotated[list[Name], AfterValidator(_distinct)] = Field(
        default=[], description="files of config/models that are evaluated without training"
    )
    train_data: Name | None = Field(
        default=None, description="a file of config/datasets; required where there are methods"
    )
    benchmarks: Names = Field(description="files of config/benchmarks, the columns of the tables")
    evaluation: Evaluation = Field(description="how benchmarks are sampled")
    tables: Annotated[list[TableId], AfterValidator(_distinct)] = Field(
        description="tables to make"
    )
    figures: Annotated[list[FigureId], AfterValidator(_distinct)] = Field(
        description="figures to make"
    )

    @model_validator(mode="before")
    @classmethod
    def _nothing_is_trained(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("methods") or not values.get("baselines"):
            return values
        evaluation = values.get("evaluation")
        if isinstance(evaluation, dict):
            evaluation = {"updates": [1]} | evaluation
        known = UNTRAINED | {"models": values["baselines"]}
        return known | values | ({"evaluation": evaluation} if evaluation else {})

    @model_validator(mode="after")
    def _methods_or_baselines(self) -> Self:
        if self.methods and self.train_data is None:
            raise ValueError("train_data: is missing; add the key")
        for key in ("extra_runs", "figures"):
            if not self.methods and getattr(self, key):
                raise ValueError(f"{key}: need methods, and there are none; remove them")
        return self

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        lengths = [(n, self.updates) for n in self.staleness]
        for extra in self.extra_runs:
            lengths += [(n, extra.updates or self.updates) for n in extra.staleness]
        for n, updates in lengths:
            if updates % n:
                raise ValueError(
                    f"staleness: {n} does not divide updates {updates}; a rollout batch would be "
                    f"cut short"
                )
        for extra in self.extra_runs:
            if extra.updates and extra.updates > self.updates:
                raise ValueError(
                    f"extra_runs: updates: {extra.updates} is more than the study's {self.updates}"
                )
            if extra.evaluate and extra.updates not in (None, self.updates):
                raise ValueError(
                    f"extra_runs: updates: runs of {extra.updates} updates have not the "
                    f"checkpoints of evaluation.updates; write evaluate: false"
                )
        for name in self.evaluation.samples:
            if name not in self.benchmarks:
                raise ValueError(f"evaluation.samples: {name!r} is not in benchmarks; remove it")
        for update in self.evaluation.updates:
            if update not in self.checkpoints:
                raise ValueError(
                    f"evaluation.updates: {update} is not in checkpoints {self.checkpoints}"
                )
        return self
