"""`config/methods`."""

from typing import Literal

from pydantic import Field

from respo.config.schema.models import LengthPenalty
from respo.config.schema.types import Coefficient, Label, Line, Rounds, Scalar, Strict

Aggregation = Literal[
    "token-mean", "seq-mean-token-mean", "seq-mean-token-sum", "seq-mean-token-sum-norm"
]


class Objective(Strict):
    """What a method computes."""

    objective: str = Field(
        description="a coefficient function of src/respo/objectives or of `own_methods`"
    )
    parameters: dict[str, Scalar] = Field(
        default={}, description="its keyword arguments; those left out keep the defaults"
    )


RoutingReplay = Literal["none", "R2", "R3"]


class Overrides(LengthPenalty):
    """The options of a run that a method sets itself; those left out are the study's."""

    loss_aggregation: Aggregation | None = Field(
        default=None, description="instead of the study's, where the paper prescribes another"
    )
    kl_coefficient: Coefficient | None = Field(default=None, description="instead of the study's")
    entropy_coefficient: Coefficient | None = Field(
        default=None, description="instead of the study's"
    )
    dynamic_sampling: Rounds | None = Field(default=None, description="instead of the study's")
    routing_replay: RoutingReplay | None = Field(default=None, description="instead of the study's")


class Method(Overrides, Objective):
    """`config/methods/NAME.yaml`: an objective with its parameters."""

    label: Label = Field(description="name in tables and figures")
    source: Line = Field(description="paper and section")
    deviations: list[Line] = Field(description="numbered departures from the source; [] if none")
