"""A policy as a folder in Hugging Face format."""

from pathlib import Path

import torch

from respo.policy.weights import Policy


def save_policy(policy: Policy, folder: Path) -> None:
    """Write the folder; it appears whole or not at all, and replaces an older one."""
    raise NotImplementedError


def load_policy(folder: Path, device: str | torch.device = "cpu") -> Policy:
    """Read a folder written by `save_policy` or by transformers. Weights do not require gradients.

    Raises:
        UserError: the folder is missing, incomplete or damaged, or of another kind of model.
    """
    raise NotImplementedError


def policy_hash(folder: Path) -> str:
    """SHA-256 of the weights file."""
    raise NotImplementedError
