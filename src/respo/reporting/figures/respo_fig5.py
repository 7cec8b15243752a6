"""Trajectories of dense models. ReSPO, Fig. 5."""

from matplotlib.figure import Figure

from respo.reporting import choices, dynamics
from respo.reporting.results import Results

QUANTITIES = (dynamics.ACCURACY, dynamics.LENGTH, dynamics.KL, dynamics.ENTROPY)


def draw(results: Results) -> Figure:
    """Draw evaluation accuracy, response length, approximate KL and entropy, a column per N."""
    return dynamics.draw(results, choices.dense(results.study), QUANTITIES)
