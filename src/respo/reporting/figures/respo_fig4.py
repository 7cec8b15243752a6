"""Accuracy by response length: all benchmarks together, and each. ReSPO, Fig. 4.

Departure from the paper: all models of the study, and error bands.
"""

from matplotlib.figure import Figure

from respo.reporting import grouping, length_bins, selection, style
from respo.reporting.curves import Looks
from respo.reporting.results import Results

WIDTH, HEIGHT = 1.5, 1.45  # inches of a panel


def draw(results: Results) -> Figure:
    """Draw a row of panels per model and N: first all benchmarks, then one each."""
    study = results.study
    runs = selection.trained(study)
    groups, settings = grouping.groups(runs), grouping.settings(runs)
    looks = Looks(study)
    titles = ["all benchmarks", *(benchmark.label for benchmark in study.benchmarks.values())]
    size = (0.8 + WIDTH * len(titles), 1.2 + HEIGHT * len(settings))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(settings), len(titles), squeeze=False, sharex=True, sharey=True)
    for axes, title in zip(panels[0], titles, strict=True):
        axes.set_title(title)
    for row, setting in zip(panels, settings, strict=True):
        row[0].set_ylabel(setting.title(study, ",\n") + "\naccuracy")
        columns = zip(row, [None, *range(len(study.benchmarks))], strict=True)
        length_bins.fill(results, setting, groups, list(columns), looks)
        for axes in row:
            axes.label_outer()
    panels[0, 0].set_ylim(-0.04, 1.04)
    style.legend(figure, looks.legend())
    style.note(figure, length_bins.note(results, groups))
    return figure
