import numpy as np
import pytest
from matplotlib.figure import Figure

from respo.reporting import dynamics, grouping, style
from respo.reporting.dynamics import (
    ACCURACY,
    CLIPPED,
    DRIFT,
    ENTROPY,
    GRADIENT,
    KL,
    REFERENCE_KL,
    SCORE,
    Point,
)

ON_POLICY = {"extra_runs": [{"methods": ["grpo"], "staleness": [1]}]}


def lines(axes):
    """Curves of an axes, without the line at zero."""
    return [line for line in axes.lines if len(line.get_xdata()) > 2]


def drawn(made, quantities, **options):
    with style.applied():
        return dynamics.draw(made.results, made.study.runs(), quantities, **options)


def test_a_method_looks_the_same_in_all_figures(folder):
    other = {"methods": ["gspo"], "staleness": [8]}
    made = folder(methods=["grpo", "vespo"], extra_runs=[other])
    for run in made.study.runs():
        made.metrics([0.0] * 32, [0.0] * 32, run.method)
    shown = [run for run in made.study.runs() if run.method == "gspo"]
    with style.applied():
        (axes,) = dynamics.draw(made.results, shown, (SCORE,)).axes
    assert [line.get_color() for line in lines(axes)] == [
        style.lines(made.study.methods)["gspo"]["color"]
    ]


def evaluated(made):
    groups = grouping.groups(made.study.runs())
    found = dynamics.evaluations(made.results, groups)
    return [found[group] for group in groups]


def test_evaluations_are_means_over_seeds_and_benchmarks(folder):
    made = folder(seeds=[1, 2])
    for seed, correct in ((1, [2, 0]), (2, [2, 1])):
        made.cell("easy", correct, "grpo", seed=seed)
        made.cell("hard", [0, 0], "grpo", seed=seed)
    made.cell("easy", [2, 0], "respo", seed=1)
    grpo, respo = evaluated(made)
    # Problems of easy: 1 and (0 + 1/2) / 2 = 1/4, mean 5/8; hard: 0. Macro average: 5/16.
    assert grpo.keys() == {32}
    assert grpo[32].value == pytest.approx(5 / 16)
    # Two problems, drawn twice: standard deviation 3/8 / sqrt(2), halved by the average with hard.
    assert grpo[32].error == pytest.approx(3 / 8 / np.sqrt(2) / 2, rel=0.03)
    # One benchmark is missing: no macro average.
    assert respo == {}


def test_evaluations_begin_with_the_model_as_it_comes(folder):
    made = folder(methods=["grpo"], baselines=["small"])
    for method, staleness, seed, c in (("baseline", 0, 0, 0), ("grpo", 8, 1, 2)):
        for benchmark in ("easy", "hard"):
            made.cell(benchmark, [c], method, staleness, seed)
    (grpo,) = evaluated(made)
    assert {update: each.value for update, each in grpo.items()} == {0: 0.0, 32: 1.0}


def test_runs_that_are_not_evaluated_have_no_points(folder):
    unseen = {"methods": ["gspo"], "staleness": [8], "evaluate": False}
    assert evaluated(folder(methods=["grpo"], extra_runs=[unseen])) == [{}, {}]


def test_points_have_bars(folder):
    axes = Figure().subplots()
    dynamics.draw_points(axes, {1: Point(0.5, 0.1), 2: Point(0.6, 0.2)}, {"color": "red"})
    (bars,) = axes.containers
    ends = [path.vertices[:, 1].tolist() for path in bars.lines[2][0].get_paths()]
    assert ends == [pytest.approx([0.4, 0.6]), pytest.approx([0.4, 0.8])]
    # A bar that is shorter than the point is seen in it.
    assert bars.lines[0].get_markerfacecolor() == "white"
    assert bars.lines[2][0].get_zorder() > bars.lines[0].get_zorder()
    dynamics.draw_points(axes, {}, {"color": "red"})
    assert len(axes.containers) == 1


def marks(axes):
    """Texts of an axes with their place, which panels without a mark or an explanation lack."""
    return [(text.get_text(), text.xy) for text in axes.texts]


def test_points_of_some_seeds_are_marked(folder):
    made = folder(seeds=[1, 2])
    for seed in (1, 2):
        for method, benchmarks in (("grpo", ["easy", "hard"]), ("respo", ["easy", "hard"][:seed])):
            for benchmark in benchmarks:
                made.cell(benchmark, [2, 2], method, seed=seed)
    figure = drawn(made, (ACCURACY,))
    # ReSPO, the second of two methods, lacks the hard benchmark of seed 1: the mean is of seed 2.
    (mark,) = marks(figure.axes[0])
    assert mark == ("†", (pytest.approx(32 + 5.12 / 4), 1.0))
    note = " ".join(figure.get_supxlabel().split())
    assert "1 of 8 cells missing: small/respo/N8/seed1/eval/32/hard/cell.json" in note
    assert "† of some of the seeds alone: Small & dense, N = 8, ReSPO, update 32: 1 of 2" in note


def test_an_empty_panel_says_why(folder):
    unseen = {"methods": ["gspo"], "staleness": [16], "evaluate": False}
    made = folder(baselines=["small"], extra_runs=[unseen])
    for benchmark in ("easy", "hard"):
        made.cell(benchmark, [1, 2], "baseline", 0, 0)
    figure = drawn(made, (ACCURACY, SCORE))
    texts = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    # Two methods on two benchmarks; the point that all start from is there, and explains nothing.
    assert texts == [
        ["4 of 6 cells missing"],
        ["not evaluated"],
        ["2 of 2 runs missing"],
        ["1 of 1 runs missing"],
    ]


@pytest.mark.parametrize("updates", [[32], [8, 16, 32]])
def test_all_start_from_one_point(folder, updates):
    evaluation = {"updates": updates, "temperature": 1.0, "top_p": 0.7, "seed": 0}
    made = folder(baselines=["small"], checkpoints=updates, evaluation=evaluation)
    for benchmark in ("easy", "hard"):
        made.cell(benchmark, [1, 2], "baseline", 0, 0)
        for method in ("grpo", "respo"):
            made.cell(benchmark, [2, 2], method)
    figure = drawn(made, (ACCURACY,))
    *methods, start = figure.axes[0].containers
    assert (start.lines[0].get_xdata(), start.lines[0].get_ydata()) == ([0], [0.75])
    assert start.lines[0].get_color() == style.START["color"]
    # The lines, where there are any, begin there.
    assert [0 in c.lines[0].get_xdata() for c in methods] == [len(updates) > 1] * 2
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["GRPO", "ReSPO", "as it comes"]


def test_lines_panels_and_notes(folder):
    made = folder(staleness=[8, 16], **ON_POLICY)
    for run in made.study.runs():
        made.metrics(
            [0.5] * 32, [-0.1] * 32, run.method, run.staleness, entropy=list(np.arange(32.0))
        )
        for benchmark in ("easy", "hard"):
            made.cell(benchmark, [1, 2], run.method, run.staleness)
    figure = drawn(made, (ACCURACY, SCORE, ENTROPY))
    assert len(figure.axes) == 6
    accuracy, _, score, _, entropy, _ = figure.axes
    assert score.get_ylabel() == "training accuracy"
    # The two methods, then the reference; bars of the points beside each other.
    assert [c.lines[0].get_ydata()[0] for c in accuracy.containers] == [0.75] * 3
    places = [c.lines[0].get_xdata()[0] for c in accuracy.containers]
    assert places == pytest.approx([32 - 5.12 / 3, 32, 32 + 5.12 / 3])
    assert [line.get_color() for line in lines(score)] == [
        style.FIXED["grpo"]["color"],
        style.FIXED["respo"]["color"],
        style.REFERENCE["color"],
    ]
    assert lines(score)[1].get_ydata() == pytest.approx([0.75] * 32)
    # A window of three updates.
    assert lines(entropy)[1].get_ydata()[:2] == pytest.approx([0.5, 1])
    note = " ".join(figure.get_supxlabel().split())
    assert note.startswith("metrics: running mean over 3 updates; training accuracy: (s + 1) / 2, ")
    assert "responses, without a length penalty; evaluation accuracy: mean of Easy, Hard" in note
    assert "missing" not in note
    assert "alone" not in note
    assert not any(axes.texts for axes in figure.axes)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["GRPO", "ReSPO", "on-policy (N = 1)"]


def test_what_starts_anew_with_a_rollout_batch(folder):
    made = folder(methods=["grpo"])
    saw = [-(update % 8) / 10 for update in range(32)]
    made.metrics([0.0] * 32, saw, "grpo")
    figure = drawn(made, (SCORE, DRIFT))
    (line,) = lines(figure.axes[1])
    # Four batches, each with the mean of 0, -0.1, ..., -0.7, in their middle.
    assert line.get_xdata().tolist() == [4.5, 12.5, 20.5, 28.5]
    assert line.get_ydata() == pytest.approx([-0.35] * 4)
    assert "mean log W over whole rollout batches" in " ".join(figure.get_supxlabel().split())


@pytest.mark.parametrize(("drift", "scale"), [(-0.1, "linear"), (-50.0, "symlog")])
def test_zero_is_in_the_picture(folder, drift, scale):
    made = folder(methods=["grpo"])
    made.metrics([0.0] * 32, [drift] * 32, "grpo")
    (axes,) = drawn(made, (DRIFT,)).axes
    assert axes.get_ylim()[1] >= 0
    assert axes.get_yscale() == scale


def test_bands_and_missing_runs(folder):
    made = folder(seeds=[1, 2])
    made.metrics([0.0] * 32, [0.0] * 32, "grpo", seed=1)
    made.metrics([1.0] * 32, [0.0] * 32, "grpo", seed=2)
    made.metrics([1.0] * 32, [0.0] * 32, "respo", seed=1)
    figure = drawn(made, (SCORE,))
    (axes,) = figure.axes
    assert len(lines(axes)) == 2
    (band,) = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    # Accuracies 1/2 and 1: mean 3/4, deviation 1/4.
    assert (heights.min(), heights.max()) == pytest.approx((0.5, 1.0))
    note = figure.get_supxlabel().replace("\n", " ")
    assert "band: ± 1 population standard deviation over seeds" in note
    assert "1 of 4 runs missing: small/respo/N8/seed2" in note
    assert "lines of some of the seeds alone: Small & dense, N = 8, ReSPO: 1 of 2" in note


@pytest.mark.parametrize(("updates", "joined"), [([32], False), ([8, 16, 32], True)])
def test_few_checkpoints_are_not_joined(folder, updates, joined):
    evaluation = {"updates": updates, "temperature": 1.0, "top_p": 0.7, "seed": 0}
    made = folder(methods=["grpo"], checkpoints=updates, evaluation=evaluation)
    for benchmark in ("easy", "hard"):
        made.cell(benchmark, [1, 2], "grpo")
    figure = drawn(made, (ACCURACY,))
    (bars,) = figure.axes[0].containers
    assert (bars.lines[0].get_linestyle() != "None") == joined
    note = " ".join(figure.get_supxlabel().split())
    assert "evaluation accuracy: mean of Easy, Hard, bars" in note
    assert ("not joined: fewer than 3 checkpoints were evaluated" in note) != joined


def test_the_accuracy_may_be_of_some_benchmarks(folder):
    made = folder(methods=["grpo"])
    made.cell("easy", [1, 2], "grpo")
    figure = drawn(made, (ACCURACY,), benchmarks=["easy"])
    (bars,) = figure.axes[0].containers
    assert bars.lines[0].get_ydata() == pytest.approx([0.75])
    assert "mean of Easy, bars" in " ".join(figure.get_supxlabel().split())


def test_a_share_begins_at_zero(folder):
    made = folder(methods=["grpo"], staleness=[8, 16])
    for staleness, share in ((8, 0.4), (16, 0.2)):
        made.metrics([0.0] * 32, [0.0] * 32, "grpo", staleness, clip_fraction_pos=[share] * 32)
    for axes in drawn(made, (CLIPPED,)).axes:
        # The two panels have one axis, which holds the curves of both.
        assert axes.get_ylim() == pytest.approx((-1.2, 43.2))
    (axes,) = drawn(folder(methods=["respo"]), (CLIPPED,)).axes
    assert axes.get_ylim() == pytest.approx((-0.03, 1.08))


def test_nothing_there_yet(folder):
    figure = drawn(folder(staleness=[8, 16, 32]), (ACCURACY, SCORE, GRADIENT))
    assert not any(lines(axes) for axes in figure.axes)
    assert "6 of 6 runs missing" in figure.get_supxlabel().replace("\n", " ")


def test_spikes_are_not_smoothed(folder):
    made = folder(methods=["grpo"])
    norm = [0.2] * 16 + [5.0] + [0.2] * 15
    made.metrics([0.0] * 32, [0.0] * 32, "grpo", grad_norm=norm)
    figure = drawn(made, (GRADIENT,), smooth=False)
    (axes,) = figure.axes
    assert lines(axes)[0].get_ydata() == pytest.approx(norm)
    assert axes.get_yscale() == "log"
    figure.draw_without_rendering()
    assert {"0.5", "1", "2"} <= {label.get_text() for label in axes.get_yticklabels()}
    assert figure.get_supxlabel() == "not smoothed"


def test_the_divergence_is_that_of_the_loss(folder):
    assert dynamics.kl(folder().results) == KL
    assert dynamics.kl(folder(kl_coefficient=0.001).results) == REFERENCE_KL
    assert KL.name == "approximate KL"
