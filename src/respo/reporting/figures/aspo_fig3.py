"""Mean token ratio of responses by sign of their advantage. ASPO, Fig. 3."""

from typing import Any

from matplotlib.figure import Figure

from respo.reporting import choices, curves, grouping, missing, style
from respo.reporting.dynamics import from_zero
from respo.reporting.results import Results

# Not the colours of methods: a panel has one method.
LINES: dict[str, dict[str, Any]] = {
    "A > 0": {"color": "#222222", "linestyle": "-"},
    "A < 0": {"color": "#888888", "linestyle": (0, (4, 1.5))},
}
COLUMNS = dict(zip(LINES, ("ratio_mean_pos", "ratio_mean_neg"), strict=True))
WIDTH, HEIGHT = 1.75, 1.5  # inches of a panel


def draw(results: Results) -> Figure:
    """Draw a panel per method, a row per model and N."""
    study = results.study
    runs = choices.off_policy(study)
    groups, settings = grouping.groups(runs), grouping.settings(runs)
    methods = [name for name in study.study.methods if any(run.method == name for run in runs)]
    size = (max(4.0, 0.9 + WIDTH * len(methods)), 1.1 + HEIGHT * len(settings))
    figure = Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(settings), len(methods), squeeze=False, sharex=True, sharey="row")
    width = curves.window(study.study.updates)
    for row, setting in zip(panels, settings, strict=True):
        row[0].set_ylabel(setting.title(study, ",\n") + "\nmean token ratio − 1")
        for group in grouping.shown_in(setting, groups):
            axes = row[methods.index(group.method)]
            metrics = [results.metrics(run, *COLUMNS.values()) for run in group.runs]
            for sign, column in COLUMNS.items():
                seeds = [metric[column] - 1 for metric in metrics if metric is not None]
                curve = curves.smoothed(seeds, width, group.staleness)
                curves.draw_curve(axes, curve, LINES[sign])
        from_zero(row)
        style.plain_ticks(row[0])
    for axes, name in zip(panels[0], methods, strict=True):
        axes.set_title(study.methods[name].label)
    for axes in panels[-1]:
        axes.set(xlabel="policy updates", xlim=(0, study.study.updates))
    figure.align_ylabels()
    style.legend(figure, LINES)
    text = (
        "token ratio: π / π_old, here the mean over the tokens of a response, then over the "
        "responses of one sign; shown are means of rollout batches, as a running mean over as many "
        f"of them as make about {width} updates, one at least"
    )
    text += curves.spread_note(runs) + missing.runs(results, runs)
    style.note(figure, text)
    return figure
