"""What the training of a run depends on: the configuration files of a results folder."""

from typing import Self

from pydantic import model_validator

from respo.config.schema.data import Chain, Dataset
from respo.config.schema.methods import Objective
from respo.config.schema.policies import Checkpoint, LocalPolicy, Policy, VerlPolicy
from respo.config.schema.studies import Training
from respo.config.schema.types import Positive, Seed, Strict


class InitialConfig(Strict):
    """All that the initial weights of a local model depend on."""

    model: LocalPolicy
    # Demonstrations can be written for prompts of the generator only.
    data: Chain


class PublishedConfig(Strict):
    """Where the initial weights of a published model are."""

    checkpoint: Checkpoint


class RunConfig(Strict):
    """`config.yaml` of a run folder: all that training depends on, and nothing else.

    Labels and names are left out: changing one must not train anew. ``objective_code`` changes with
    the objective's formula, not with its comments.
    """

    model: Policy
    objective: Objective
    objective_code: str
    staleness: Positive
    seed: Seed
    training: Training
    train_data: Dataset

    @model_validator(mode="after")
    def _possible(self) -> Self:
        problems = impossible_options(self.model, self.training, self.staleness)
        for option, reason in problems.items():
            raise ValueError(f"training.{option}: {reason}")
        return self


def impossible_options(
    model: LocalPolicy | VerlPolicy, training: Training, staleness: int
) -> dict[str, str]:
    """Return the options that a model cannot be trained with, each with the reason and remedy."""
    problems = {}
    if training.overlong_buffer > model.max_response_tokens:
        problems["overlong_buffer"] = (
            f"{training.overlong_buffer} is greater than max_response_tokens "
            f"{model.max_response_tokens}; lower it"
        )
    return problems | model.impossible_options(training, staleness)
