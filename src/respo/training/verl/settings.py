"""Configuration classes of the objectives, as verl reads them from `actor.policy_loss`."""

from dataclasses import dataclass, fields, make_dataclass
from typing import Any, ClassVar

from verl.workers.config.actor import PolicyLossConfig

from respo.objectives import check_parameters, parameter_defaults
from respo.objectives.registry import get
from respo.training.verl import engine
from respo.training.verl.names import class_name, loss_mode


@dataclass
class ObjectiveConfig(PolicyLossConfig):
    """What the configurations of all objectives share.

    Raises ValueError for a parameter that the objective does not have, a value that it does not
    allow, and a `loss_mode` that is not the objective's.
    """

    objective: ClassVar[str]

    def __new__(cls, *_: Any, **given: Any) -> "ObjectiveConfig":
        """Refuse unknown parameters, and make the engines of this process know our losses."""
        # Where a configuration is made or unpickled, an engine will train with it. At the import
        # of the plugin it is too early: that would import all engines into all of verl's processes.
        engine.install(ObjectiveConfig)
        own = {field.name for field in fields(cls)}
        check_parameters(cls.objective, {key: None for key in given if key not in own})
        return super().__new__(cls)

    def __post_init__(self) -> None:
        expected = loss_mode(self.objective)
        if self.loss_mode != expected:
            raise ValueError(
                f"actor.policy_loss: {type(self).__name__} needs loss_mode={expected}, "
                f"not {self.loss_mode!r}"
            )
        check_parameters(self.objective, self.parameters)

    @property
    def parameters(self) -> dict[str, float | None]:
        """The objective's parameters."""
        return {key: getattr(self, key) for key in parameter_defaults(self.objective)}


def config_class(objective: str, module: str) -> type[ObjectiveConfig]:
    """Return the configuration class of an objective, to stand in `module` (for pickle).

    Raises:
        ValueError: a parameter is called like an option that verl has there.
    """
    verls = {field.name for field in fields(PolicyLossConfig)}
    if taken := sorted(verls & parameter_defaults(objective).keys()):
        raise ValueError(
            f"objective {objective}: its parameter {taken[0]} is an option of verl's policy_loss "
            f"already; rename it"
        )
    parameters = [
        (key, float | None if parameter.optional else float, parameter.default)
        for key, parameter in get(objective).parameters.items()
    ]
    return make_dataclass(
        class_name(objective),
        [("loss_mode", str, loss_mode(objective)), *parameters],
        bases=(ObjectiveConfig,),
        namespace={
            "__doc__": f"Parameters of the objective `{objective}`.",
            "__module__": module,
            "objective": objective,
        },
    )
