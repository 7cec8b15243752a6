"""Whether a training score has a length penalty in it, which the papers tell by its name."""

from collections.abc import Sequence

from respo.config import Run
from respo.config.study import ResolvedStudy
from respo.reporting import labels

SCORE = "training accuracy: (s + 1) / 2, where s is the mean reward of an update's responses"


def label(study: ResolvedStudy, runs: Sequence[Run], model: str, name: str) -> str:
    """Name the score of a model's runs: all, some or none of them may have a penalty."""
    penalized = [_has_penalty(study, run) for run in runs if run.model == model]
    if not any(penalized):
        return name
    return f"penalized\n{name}" if all(penalized) else f"partly penalized\n{name}"


def note(study: ResolvedStudy, runs: Sequence[Run]) -> str:
    """Say what the score is, and of which models, or methods of them, it has a penalty."""
    penalized = [run for run in runs if _has_penalty(study, run)]
    if not penalized:
        return f"{SCORE}, without a length penalty"
    parts = []
    for model in dict.fromkeys(run.model for run in penalized):
        of_model = [run for run in runs if run.model == model]
        found = [run for run in of_model if run in penalized]
        methods = ", ".join(dict.fromkeys(labels.method(study, run) for run in found))
        parts.append(study.models[model].label + (f" ({methods})" if found != of_model else ""))
    others = "; no other has one" if len(penalized) < len(runs) else ""
    return f"{SCORE}; penalized: s includes the length penalty, for {', '.join(parts)}{others}"


def _has_penalty(study: ResolvedStudy, run: Run) -> bool:
    return bool(study.training(run).overlong_buffer)
