import numpy as np
import pytest

from respo.config import Run
from respo.reporting import curves, grouping, style
from respo.reporting.curves import Looks, over_seeds, running_mean, smoothed, window
from respo.reporting.grouping import Group, Setting

ON_POLICY = {"extra_runs": [{"methods": ["grpo"], "staleness": [1]}]}


def test_running_mean_is_centred_and_shorter_at_the_ends():
    # By hand: (1+2)/2, (1+2+6)/3, (2+6+7)/3, (6+7+9)/3, (7+9)/2.
    assert running_mean(np.array([1.0, 2, 6, 7, 9]), 3) == pytest.approx([1.5, 3, 5, 22 / 3, 8])
    assert running_mean(np.array([1.0, 2]), 1) == pytest.approx([1, 2])
    assert running_mean(np.array([1.0, 3]), 9) == pytest.approx([2, 2])


def test_running_mean_leaves_out_what_is_not_a_number():
    nan = np.nan
    mean = running_mean(np.array([1.0, nan, 3, nan, nan, nan]), 3)
    assert mean == pytest.approx([1, 2, 3, 3, nan, nan], nan_ok=True)


@pytest.mark.parametrize(("updates", "width"), [(192, 13), (1024, 65), (32, 3), (8, 1)])
def test_window_is_odd_and_about_a_sixteenth(updates, width):
    assert window(updates) == width


def test_over_seeds():
    updates = np.array([1, 2])
    assert over_seeds([]) is None
    alone = over_seeds([(updates, np.array([1.0, 2]))])
    assert (alone.updates.tolist(), alone.mean.tolist(), alone.spread) == ([1, 2], [1, 2], None)
    pair = over_seeds([(updates, np.array([1.0, 2])), (updates, np.array([3.0, 2]))])
    # Population standard deviation of (1, 3): 1.
    assert (pair.mean.tolist(), pair.spread.tolist()) == ([2, 2], [1, 0])


def test_smoothed_by_update():
    curve = smoothed([np.array([1.0, 2, 6])], 3)
    assert curve.updates.tolist() == [1, 2, 3]
    assert curve.mean == pytest.approx([1.5, 3, 4])


@pytest.mark.parametrize(
    ("width", "mean"),
    [
        # Rollout batches of two updates have the means 1, 2 and 6; a window of 3 updates is as
        # good as one batch, one of 6 is 3 batches.
        (3, [1, 2, 6]),
        (6, [1.5, 3, 4]),
    ],
)
def test_smoothed_over_whole_rollout_batches(width, mean):
    curve = smoothed([np.array([0.0, 2, 1, 3, 5, 7])], width, staleness=2)
    assert curve.updates.tolist() == [1.5, 3.5, 5.5]
    assert curve.mean == pytest.approx(mean)


def test_on_policy_runs_are_the_reference_of_their_model():
    runs = [Run("a", "grpo", 1, 1), Run("a", "grpo", 8, 1), Run("a", "grpo", 8, 2)]
    runs += [Run("b", "respo", 1, 1)]
    groups = grouping.groups(runs)
    assert [(group.model, group.staleness, len(group.runs)) for group in groups] == [
        ("a", 1, 1), ("a", 8, 2), ("b", 1, 1),
    ]  # fmt: skip
    # Alone, they have a column of their own.
    assert grouping.settings(runs) == [Setting("a", 8), Setting("b", 1)]
    own, beside = grouping.shown_in(Setting("a", 8), groups)
    assert (beside.is_reference_in(Setting("a", 8)), own.is_reference_in(Setting("a", 8))) == (
        True,
        False,
    )
    assert grouping.shown_in(Setting("b", 1), groups) == [groups[2]]
    assert "population standard deviation" in curves.spread_note(runs)
    assert curves.spread_note(runs[:2]) == ""


def test_the_legend_holds_what_was_drawn(folder):
    looks = Looks(folder(**ON_POLICY).study)
    setting = Setting("small", 8)
    assert looks.line(Group("small", 1, "grpo", ()), setting) == style.REFERENCE
    assert looks.line(Group("small", 8, "respo", ()), setting) == style.FIXED["respo"]
    assert list(looks.legend()) == ["ReSPO", curves.ON_POLICY]


def test_thin_lines_are_solid(folder):
    looks = Looks(folder(methods=["gspo"]).study, thin=True)
    line = looks.line(Group("small", 8, "gspo", ()), Setting("small", 8))
    assert (line["linestyle"], line["color"]) == ("-", style.FIXED["gspo"]["color"])
