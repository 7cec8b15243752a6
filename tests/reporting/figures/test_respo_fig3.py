import numpy as np
import pytest

from respo.reporting import style
from respo.reporting.figures.respo_fig3 import (
    draw,
    gather,
    over_seeds,
    running_mean,
    window,
)

ON_POLICY = {"extra_runs": [{"methods": ["grpo"], "staleness": [1]}]}


def test_running_mean_is_centred_and_shorter_at_the_ends():
    # By hand: (1+2)/2, (1+2+6)/3, (2+6+7)/3, (6+7+9)/3, (7+9)/2.
    assert running_mean(np.array([1.0, 2, 6, 7, 9]), 3) == pytest.approx([1.5, 3, 5, 22 / 3, 8])
    assert running_mean(np.array([1.0, 2]), 1) == pytest.approx([1, 2])
    assert running_mean(np.array([1.0, 3]), 9) == pytest.approx([2, 2])


@pytest.mark.parametrize(("updates", "width"), [(192, 13), (1024, 65), (32, 3), (8, 1)])
def test_window_is_odd_and_about_a_sixteenth(updates, width):
    assert window(updates) == width


def test_over_seeds():
    assert over_seeds([]) is None
    alone = over_seeds([np.array([1.0, 2])])
    assert (alone.mean.tolist(), alone.spread) == ([1, 2], None)
    pair = over_seeds([np.array([1.0, 2]), np.array([3.0, 2])])
    # Population standard deviation of (1, 3): 1.
    assert (pair.mean.tolist(), pair.spread.tolist()) == ([2, 2], [1, 0])


def test_gather(folder):
    made = folder(seeds=[1, 2], **ON_POLICY)
    saw = [-(update % 8) / 10 for update in range(32)]
    made.metrics([0.0] * 32, saw, "grpo", seed=1)
    made.metrics([1.0] * 32, [2 * value for value in saw], "grpo", seed=2)
    reference, grpo, respo = gather(made.results)
    assert (reference.staleness, grpo.method, respo.method) == (1, "grpo", "respo")
    # Scores 0 and 1 are accuracies 1/2 and 1: mean 3/4, deviation 1/4.
    assert grpo.score.mean == pytest.approx(np.full(32, 0.75))
    assert grpo.score.spread == pytest.approx(np.full(32, 0.25))
    # The saw-tooth is not smoothed: back to zero with every rollout batch.
    assert grpo.log_weight.mean == pytest.approx([1.5 * value for value in saw])
    assert (reference.score, respo.score, respo.log_weight) == (None, None, None)


def curves(axes):
    return [line for line in axes.lines if len(line.get_xdata())]


def drawn(made):
    with style.applied():
        return draw(made.results)


def test_panels_lines_and_labels(folder):
    made = folder(staleness=[8, 16], **ON_POLICY)
    for run in made.study.runs():
        made.metrics([0.5] * 32, [-0.1] * 32, run.method, run.staleness)
    figure = drawn(made)
    assert len(figure.axes) == 4
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["Small & dense, N = 8", "Small & dense, N = 16", "", ""]
    for axes in figure.axes:
        reference, *methods = curves(axes)
        assert reference.get_color() == style.REFERENCE["color"]
        assert [line.get_color() for line in methods] == [
            style.FIXED["grpo"]["color"],
            style.FIXED["respo"]["color"],
        ]
        assert not axes.collections  # one seed: no band
    assert curves(figure.axes[0])[1].get_ydata() == pytest.approx([0.75] * 32)
    assert curves(figure.axes[2])[1].get_ydata() == pytest.approx([-0.1] * 32)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "GRPO", "ReSPO", "on-policy (N = 1)",
    ]  # fmt: skip
    assert figure.get_supxlabel() == "score: running mean over 3 updates"


def test_bands_and_missing_runs(folder):
    made = folder(seeds=[1, 2])
    made.metrics([0.0] * 32, [0.0] * 32, "grpo", seed=1)
    made.metrics([1.0] * 32, [0.0] * 32, "grpo", seed=2)
    made.metrics([1.0] * 32, [0.0] * 32, "respo", seed=1)
    figure = drawn(made)
    upper = figure.axes[0]
    assert len(curves(upper)) == 2
    (band,) = upper.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((0.5, 1.0))
    note = figure.get_supxlabel().replace("\n", " ")
    assert "band: ± 1 population standard deviation over seeds" in note
    assert "1 of 4 runs missing: small/respo/N8/seed2" in note


def test_nothing_there_yet(folder):
    figure = drawn(folder(staleness=[8, 16, 32]))
    assert not any(curves(axes) for axes in figure.axes)
    note = figure.get_supxlabel().replace("\n", " ")
    assert "6 of 6 runs missing" in note
    assert note.endswith("and 2 more")


def test_on_policy_alone_has_panels_of_its_own(folder):
    made = folder(staleness=[1])
    made.metrics([0.0] * 32, [0.0] * 32, "respo", staleness=1)
    figure = drawn(made)
    assert figure.axes[0].get_title() == "Small & dense, N = 1"
    assert curves(figure.axes[0])[0].get_color() == style.FIXED["respo"]["color"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["GRPO", "ReSPO"]


def test_two_models_have_two_rows_each(folder):
    figure = drawn(folder(models=["small", "moe"], staleness=[8, 16]))
    labels = [axes.get_ylabel() for axes in figure.axes[::2]]
    assert labels == ["training score", "mean log W"] * 2


def test_shorter_runs_are_left_out(folder):
    short = {"methods": ["vespo"], "staleness": [8], "updates": 16, "evaluate": False}
    made = folder(extra_runs=[short])
    assert [group.method for group in gather(made.results)] == ["grpo", "respo"]
