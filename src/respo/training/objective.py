"""Whether the objective that a run names is the one that is installed."""

from pathlib import Path

from respo import objectives
from respo.cli import UserError
from respo.config.schema import RunConfig


def check_objective(config: RunConfig, path: Path) -> None:
    """Refuse parameters that the objective does not take, and a formula that has changed.

    Args:
        config: the run's configuration.
        path: its file.

    Raises:
        UserError: they do not fit.
    """
    name = config.objective.objective
    try:
        objectives.check_parameters(name, config.objective.parameters)
    except ValueError as error:
        raise UserError(f"{path}: objective: {error}") from None
    if config.objective_code != objectives.code_hash(name):
        raise UserError(
            f"{path}: objective_code {config.objective_code} is not that of the installed "
            f"{name} ({objectives.code_hash(name)}); make the configuration anew"
        )
