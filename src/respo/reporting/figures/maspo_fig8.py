"""Sweep of an objective's parameters, and its ablations. MASPO, Fig. 8."""

from matplotlib.figure import Figure

from respo.reporting import choices, dynamics
from respo.reporting.results import Results

QUANTITIES = (dynamics.SCORE, dynamics.ENTROPY, dynamics.LENGTH)


def draw(results: Results) -> Figure:
    """Draw score, entropy and length of all parameter sets, a column per model."""
    return dynamics.draw(results, choices.sweeps(results.study), QUANTITIES)
