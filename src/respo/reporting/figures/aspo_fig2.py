"""Dynamics of training and evaluated accuracy. ASPO, Fig. 2, and for other models Figs. 5 to 7."""

from matplotlib.figure import Figure

from respo.reporting import choices, dynamics, selection
from respo.reporting.results import Results


def draw(results: Results) -> Figure:
    """Draw accuracy, entropy, repetition, clipping and KL, a column per model and N."""
    quantities = (
        dynamics.ACCURACY,
        dynamics.ENTROPY,
        dynamics.REPETITION,
        dynamics.CLIPPED,
        dynamics.kl(results),
    )
    runs, benchmarks = selection.full_length(results.study), choices.mathematics(results.study)
    return dynamics.draw(results, runs, quantities, benchmarks=benchmarks)
