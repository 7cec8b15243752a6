"""New weights, drawn by transformers' own initialisation."""

from respo.config.schema import Architecture
from respo.policy.weights import Policy


def create_policy(architecture: Architecture, max_positions: int, seed: int) -> Policy:
    """Draw weights for an architecture with the 20-token vocabulary; the same for the same seed."""
    raise NotImplementedError
