import numpy as np
import pytest
from matplotlib.figure import Figure

from respo.reporting import grouping, length_bins
from respo.reporting.curves import Looks
from respo.reporting.grouping import Setting

LINE = {"color": "red"}


def read(made):
    return length_bins.read(made.results, grouping.groups(made.study.runs()))


def test_bins_are_shared_by_methods_benchmarks_and_seeds(folder):
    made = folder(seeds=[1, 2])
    assert read(made) is None
    # 18 lengths below the limit of 64: by hand, two in each of nine bins; one at the limit.
    for index, (method, benchmark, seed) in enumerate(
        [("grpo", "easy", 1), ("grpo", "hard", 2), ("respo", "easy", 1)]
    ):
        lengths = range(1 + 6 * index, 7 + 6 * index)
        rows = [(f"p{n % 2}", n % 2 == 0, n) for n in lengths]
        made.scores(
            benchmark, rows + ([("p0", False, 64)] if index == 2 else []), method, seed=seed
        )
    found = read(made)
    assert found.upper_Q.tolist() == [2, 4, 6, 8, 10, 12, 14, 16, 18, 64]
    pooled = found.binned()
    assert pooled.responses_GQ.tolist() == [[2] * 6 + [0] * 4, [0] * 6 + [2] * 3 + [1]]
    assert pooled.accuracy_GQ[0, :6].tolist() == [0.5] * 6
    easy = found.binned(0)
    assert easy.responses_GQ[0].tolist() == [2] * 3 + [0] * 7
    # Problems p0 and p1 have residuals 1/2 and -1/2: 2 (1/4 + 1/4) / 2^2 = 1/4.
    assert easy.error_GQ[0, 0] == pytest.approx(0.5)
    assert np.isnan(easy.error_GQ[1, 9])
    note = length_bins.note(made.results, grouping.groups(made.study.runs()))
    assert "\n5 of 8 files of scores missing: small/grpo/N8/seed1/eval/32/hard/scores" in note
    assert "on-policy" not in note


def test_problems_of_two_benchmarks_are_not_one_cluster(folder):
    made = folder(methods=["grpo"])
    made.scores("easy", [("p0", True, 1)], "grpo")
    made.scores("hard", [("p0", False, 1)], "grpo")
    # As by hand above; one cluster alone would have no error.
    assert read(made).binned().error_GQ[0, 0] == pytest.approx(0.5)


def test_benchmarks_may_differ_in_their_limit(folder):
    made = folder(methods=["grpo"])
    benchmarks = made.study.benchmarks
    benchmarks["hard"] = benchmarks["hard"].model_copy(update={"max_response_tokens": 10})
    results = made.results
    results.study = made.study
    made.scores("easy", [("p0", True, 10), ("p0", True, 64)], "grpo")
    made.scores("hard", [("p0", True, 10)], "grpo")
    found = length_bins.read(results, grouping.groups(made.study.runs()))
    assert found.binned(0).responses_GQ[0, [0, 9]].tolist() == [1, 1]
    assert found.binned(1).responses_GQ[0, [0, 9]].tolist() == [0, 1]


def test_a_line_is_broken_where_responses_are_few():
    number = np.full((1, 10), 10)
    number[0, 3] = 9
    accuracy, error = np.full((1, 10), 0.5), np.full((1, 10), 0.1)
    error[0, 5] = np.nan
    # Equal lengths leave the ninth bin empty for all methods: that is a gap too.
    number[0, 8], accuracy[0, 8], error[0, 8] = 0, np.nan, np.nan
    axes = Figure().subplots()
    length_bins.draw(axes, length_bins.Binned(number, accuracy, error), [LINE])
    (line,) = axes.lines
    assert line.get_xdata().tolist() == list(range(1, 11))
    assert (np.flatnonzero(np.isnan(line.get_ydata())) + 1).tolist() == [4, 6, 9]
    band, bars = axes.collections
    # Where no band can be, a bar: bins 5 and 10 have no neighbour.
    ends = [path.vertices.ravel().tolist() for path in bars.get_paths()]
    assert ends == [pytest.approx([5, 0.4, 5, 0.6]), pytest.approx([10, 0.4, 10, 0.6])]
    heights = np.concatenate([path.vertices[:, 1] for path in band.get_paths()])
    assert (heights.min(), heights.max()) == pytest.approx((0.4, 0.6))


def test_without_responses_the_axis_is_there(folder):
    made = folder()
    axes = Figure().subplots()
    groups = grouping.groups(made.study.runs())
    looks = Looks(made.study)
    length_bins.fill(made.results, Setting("small", 8), groups, [(axes, None)], looks)
    assert [text.get_text() for text in axes.get_xticklabels()] == ["1", "3", "5", "7", "cap"]
    assert not axes.lines
    assert list(looks.legend()) == ["GRPO", "ReSPO"]
    assert [text.get_text() for text in axes.texts] == ["4 of 4 files of scores\nmissing"]


@pytest.mark.parametrize(
    ("evaluate", "benchmark", "why"),
    [
        (True, None, ["2 of 4 files of scores\nmissing"]),
        (True, 0, ["no bin has 10\nresponses to two\nproblems"]),
        (True, 1, ["2 of 2 files of scores\nmissing"]),
        (False, None, ["not evaluated"]),
    ],
)
def test_an_empty_panel_says_why(folder, evaluate, benchmark, why):
    unseen = {"methods": ["grpo", "respo"], "staleness": [16], "evaluate": False}
    made = folder(extra_runs=[unseen])
    for method in ("grpo", "respo"):
        made.scores("easy", [("p0", True, 3), ("p1", False, 5)], method)
    axes, groups = Figure().subplots(), grouping.groups(made.study.runs())
    setting = Setting("small", 8 if evaluate else 16)
    length_bins.fill(made.results, setting, groups, [(axes, benchmark)], Looks(made.study))
    assert [text.get_text() for text in axes.texts] == why


def test_a_panel_with_a_line_is_not_explained(folder):
    made = folder(methods=["grpo"])
    made.scores("easy", [(f"p{n % 2}", True, 3) for n in range(20)], "grpo")
    axes, groups = Figure().subplots(), grouping.groups(made.study.runs())
    length_bins.fill(made.results, Setting("small", 8), groups, [(axes, None)], Looks(made.study))
    assert not axes.texts


def test_why_on_policy_runs_have_no_line(folder):
    beside = folder(extra_runs=[{"methods": ["grpo"], "staleness": [1]}])
    groups = grouping.groups(beside.study.runs())
    assert "on-policy runs (N = 1) have no line" in length_bins.note(beside.results, groups)
    # Where they are alone, they have bins of their own.
    alone = folder(staleness=[1])
    groups = grouping.groups(alone.study.runs())
    assert "on-policy" not in length_bins.note(alone.results, groups)
