"""Gradient norm with and without a dual clip. ASPO, Fig. 8."""

from matplotlib.figure import Figure

from respo.reporting import choices, dynamics
from respo.reporting.results import Results


def draw(results: Results) -> Figure:
    """Draw the gradient norm of methods that differ in their dual clip alone."""
    # Not smoothed: the spikes are what matters.
    runs = choices.dual_clip(results.study)
    return dynamics.draw(results, runs, (dynamics.GRADIENT,), smooth=False)
