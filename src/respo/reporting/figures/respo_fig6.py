"""Trajectories of mixtures of experts. ReSPO, Fig. 6."""

from matplotlib.figure import Figure

from respo.reporting import choices, dynamics
from respo.reporting.figures.respo_fig5 import QUANTITIES
from respo.reporting.results import Results


def draw(results: Results) -> Figure:
    """Draw evaluation accuracy, response length, approximate KL and entropy, a column per N."""
    return dynamics.draw(results, choices.mixtures(results.study), QUANTITIES)
