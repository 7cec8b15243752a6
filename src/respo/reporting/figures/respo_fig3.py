"""Training curves, and accuracy by response length. ReSPO, Fig. 3.

Departure from the paper: the row between them, how far the policy drifts from the one that sampled.
"""

from matplotlib.figure import Figure

from respo.reporting import dynamics, grouping, length_bins, selection, style
from respo.reporting.curves import Looks
from respo.reporting.panels import panels
from respo.reporting.results import Results

QUANTITIES = (dynamics.SCORE, dynamics.DRIFT)


def draw(results: Results) -> Figure:
    """Draw three panels for each model and N: score, mean log W, accuracy by length."""
    runs = selection.full_length(results.study)
    groups = grouping.groups(runs)
    looks = Looks(results.study)
    labels = [*(quantity.label for quantity in QUANTITIES), "evaluation\naccuracy"]
    figure, found = panels(results.study, grouping.settings(runs), labels)
    training = {setting: axes[:-1] for setting, axes in found.items()}
    dynamics.fill(results, runs, QUANTITIES, training, looks)
    for setting, axes in found.items():
        length_bins.fill(results, setting, groups, [(axes[-1], None)], looks)
    style.legend(figure, looks.legend())
    text = dynamics.note(results, runs, QUANTITIES)
    style.note(figure, f"{text}\n{length_bins.note(results, groups)}")
    return figure
