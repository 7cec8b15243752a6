"""What the objectives are called in verl; needs no verl."""

import re

PLUGIN = "respo.training.verl.plugin"


def loss_mode(objective: str) -> str:
    """Return the name under which verl knows an objective."""
    return f"respo_{objective}"


def class_name(objective: str) -> str:
    """Return the name of an objective's configuration class: `GrpoNoIsConfig` for `grpo_no_is`."""
    words = re.split(r"[^0-9A-Za-z]+", objective)
    return "".join(word[:1].upper() + word[1:] for word in words) + "Config"
