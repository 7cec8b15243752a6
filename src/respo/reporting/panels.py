"""Grids of panels: a column per model and N, a row per quantity."""

from collections.abc import Sequence
from itertools import groupby

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import AutoLocator

from respo.config.study import ResolvedStudy
from respo.reporting import style
from respo.reporting.grouping import Setting

COLUMNS = 4
WIDTH, HEIGHT = 2.2, 1.55  # inches of a panel
# Of the horizontal axis, as a share of a run.
MARGIN = 0.035
ALONE = 3.0  # its width where there are one or two columns


def blocks(settings: Sequence[Setting]) -> list[list[Setting]]:
    """Divide settings into rows of columns: one row per model, or of models with one N each."""
    models = [list(group) for _, group in groupby(settings, key=lambda setting: setting.model)]
    if all(len(model) == 1 for model in models):
        models = [list(settings)]
    return [
        model[start : start + COLUMNS]
        for model in models
        for start in range(0, len(model), COLUMNS)
    ]


def panels(
    study: ResolvedStudy, settings: Sequence[Setting], labels: Sequence[str]
) -> tuple[Figure, dict[Setting, list[Axes]]]:
    """Make an empty panel for each setting and quantity.

    Panels beside each other share the vertical axis where they are of one model.

    Args:
        study: gives the models' labels.
        settings: at least one.
        labels: of the vertical axes, one per quantity.
    """
    all_blocks = blocks(settings)
    columns, rows = max(map(len, all_blocks)), len(labels) * len(all_blocks)
    width = (WIDTH if columns > 2 else ALONE) * columns
    # A figure of one column still has room for its legend.
    figure = Figure(figsize=(max(4.5, 0.9 + width), 0.9 + HEIGHT * rows + 0.2 * len(all_blocks)))
    figure.set_layout_engine("constrained", hspace=0.04, wspace=0.04)
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes in grid.flat:
        axes.yaxis.set_major_locator(AutoLocator())
        axes.yaxis.get_major_locator().set_params(min_n_ticks=3)
        style.plain_ticks(axes)
    found: dict[Setting, list[Axes]] = {}
    for index, block in enumerate(all_blocks):
        lines = grid[index * len(labels) : (index + 1) * len(labels)]
        for axes in lines[:, len(block) :].flat:
            axes.set_axis_off()
        for line, label in zip(lines, labels, strict=True):
            line[0].set_ylabel(label)
            for axes, setting in zip(line[1:], block[1:], strict=False):
                if setting.model == block[0].model:
                    axes.sharey(line[0])
                    axes.tick_params(labelleft=False)
        for column, setting in enumerate(block):
            lines[0, column].set_title(setting.title(study))
            found[setting] = list(lines[:, column])
    figure.align_ylabels()
    return figure, found


def over_updates(axes: Sequence[Axes], updates: int, margin: float = MARGIN) -> None:
    """Make the policy updates the common horizontal axis of panels below each other.

    It is longer than a run by a margin on both sides, for points that stand beside its ends.
    """
    for panel in axes[:-1]:
        panel.sharex(axes[-1])
        panel.tick_params(labelbottom=False)
    axes[-1].set(xlabel="policy updates", xlim=(-margin * updates, (1 + margin) * updates))
