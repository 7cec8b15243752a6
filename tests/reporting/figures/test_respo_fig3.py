import pytest

from respo.reporting import style
from respo.reporting.figures.respo_fig3 import draw

ON_POLICY = {"extra_runs": [{"methods": ["grpo"], "staleness": [1]}]}


def drawn(made):
    with style.applied():
        return draw(made.results)


def curves(axes):
    return [line for line in axes.lines if len(line.get_xdata()) > 2]


def test_panels_lines_and_labels(folder):
    made = folder(staleness=[8, 16], **ON_POLICY)
    for run in made.study.runs():
        made.metrics([0.5] * 32, [-0.1] * 32, run.method, run.staleness)
    rows = [(f"p{n % 2}", True, n) for n in range(1, 61)]
    made.scores("easy", rows, "respo", 16)
    figure = drawn(made)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["Small & dense, N = 8", "Small & dense, N = 16", "", "", "", ""]
    labels = [axes.get_ylabel() for axes in figure.axes[::2]]
    assert labels == ["training accuracy", "mean log W", "evaluation\naccuracy"]
    for axes in figure.axes[:2]:
        assert [line.get_color() for line in curves(axes)] == [
            style.FIXED["grpo"]["color"],
            style.FIXED["respo"]["color"],
            style.REFERENCE["color"],
        ]
    # At N = 16 there are two rollout batches; the last line is that at zero.
    first = [line.get_ydata()[0] for line in figure.axes[3].lines]
    assert first == pytest.approx([-0.1, -0.1, -0.1, 0])
    # 60 lengths below the limit, all correct: nine bins of six or seven, too few for a point.
    assert [len(curves(axes)) for axes in figure.axes[4:]] == [0, 2]
    note = " ".join(figure.get_supxlabel().split())
    assert note.startswith("metrics: running mean over 3 updates, mean log W over whole rollout")
    assert "9 of 10 files of scores missing" in note


def test_the_name_of_the_score_is_that_of_the_model(paper):
    figure = drawn(paper("respo"))
    labels = [axes.get_ylabel() for axes in figure.axes if "training" in axes.get_ylabel()]
    assert labels == ["training accuracy", "penalized\ntraining accuracy"]
    assert "s includes the length penalty, for Qwen3-30B-A3B" in " ".join(
        figure.get_supxlabel().split()
    )


def test_on_policy_alone_has_panels_of_its_own(folder):
    made = folder(staleness=[1])
    made.metrics([0.0] * 32, [0.0] * 32, "respo", staleness=1)
    figure = drawn(made)
    assert figure.axes[0].get_title() == "Small & dense, N = 1"
    assert curves(figure.axes[0])[0].get_color() == style.FIXED["respo"]["color"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["GRPO", "ReSPO"]


def test_two_models_have_three_rows_each(folder):
    figure = drawn(folder(models=["small", "moe"], staleness=[8, 16]))
    labels = [axes.get_ylabel() for axes in figure.axes[::2]]
    assert labels == ["training accuracy", "mean log W", "evaluation\naccuracy"] * 2


def test_shorter_runs_are_left_out(folder):
    short = {"methods": ["vespo"], "staleness": [8], "updates": 16, "evaluate": False}
    legend = drawn(folder(extra_runs=[short])).legends[0]
    assert [text.get_text() for text in legend.get_texts()] == ["GRPO", "ReSPO"]
