"""Sensitivity to single parameters, and models beside the grid. MASPO, Fig. 4."""

from matplotlib.figure import Figure

from respo.reporting import choices, dynamics
from respo.reporting.figures.maspo_fig8 import QUANTITIES
from respo.reporting.results import Results


def draw(results: Results) -> Figure:
    """Draw score, entropy and length, a column per model."""
    return dynamics.draw(results, choices.one_at_a_time(results.study), QUANTITIES)
