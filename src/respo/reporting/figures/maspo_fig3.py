"""pass@k and dynamics of the study's own methods and models. MASPO, Fig. 3.

Departure from the paper: pass@k is the mean of AIME24 and AIME25, not of one per model; of the
benchmarks with the most samples where a study lacks these.
"""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from respo.reporting import choices, dynamics, grouping, missing, style
from respo.reporting.curves import Looks
from respo.reporting.grouping import Setting
from respo.reporting.panels import panels
from respo.reporting.results import Results

QUANTITIES = (dynamics.SCORE, dynamics.ENTROPY, dynamics.LENGTH)
# Points of several methods at one k lie beside each other, as far as this share of k.
SPREAD_OF_POINTS = 0.4


def draw(results: Results) -> Figure:
    """Draw pass@k, score, entropy and length, a column per model and N."""
    study = results.study
    runs = choices.grid(study)
    looks = Looks(study)
    labels = ["pass@k", *(quantity.label for quantity in QUANTITIES)]
    figure, found = panels(study, grouping.settings(runs), labels)
    _fill_pass_at_k(results, {setting: axes[0] for setting, axes in found.items()}, looks)
    below = {setting: axes[1:] for setting, axes in found.items()}
    dynamics.fill(results, runs, QUANTITIES, below, looks)
    style.legend(figure, looks.legend())
    benchmarks = choices.most_sampled(study)
    names = dynamics.named(results, benchmarks)
    text = (
        f"pass@k: mean of {names}, bars ± 1 standard error over problems, points of one k beside "
        "each other in the order of the legend; "
    )
    text += dynamics.note(results, runs, QUANTITIES)
    style.note(figure, text + missing.cells(results, runs, benchmarks, last=True))
    return figure


def _fill_pass_at_k(results: Results, found: dict[Setting, Axes], looks: Looks) -> None:
    groups = grouping.groups(choices.grid(results.study))
    benchmarks = choices.most_sampled(results.study)
    tries = powers_of_two(results.study.samples(benchmarks[0]))
    means = {
        (group, float(k)): dynamics.problem_means(results, group.runs, None, benchmarks, k)
        for group in groups
        for k in tries
    }
    points = dynamics.estimates(groups, means)
    for setting, axes in found.items():
        axes.set_xscale("log", base=2)
        axes.set_xticks(tries, [str(k) for k in tries])
        axes.minorticks_off()
        axes.set_xlabel("k")
        shown = grouping.shown_in(setting, groups)
        for position, group in enumerate(shown):
            shift = 1 + SPREAD_OF_POINTS * ((position + 0.5) / len(shown) - 0.5)
            of_group = {k * shift: estimate for k, estimate in points[group].items()}
            dynamics.draw_points(axes, of_group, looks.line(group, setting))
        if not any(points[group] for group in shown):
            dynamics.tell_cells(results, axes, shown, benchmarks, last=True)


def powers_of_two(largest: int) -> list[int]:
    """Return 1, 2, 4, ... up to a number, and the number itself."""
    powers = [2**power for power in range(largest.bit_length())]
    return sorted({*powers, largest})
