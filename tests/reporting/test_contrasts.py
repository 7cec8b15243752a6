import csv
import io

import pytest

from respo.reporting.contrasts import COLUMNS, VERDICTS, contrasts, factor, section
from respo.reporting.layout import Table, render
from respo.reporting.rows import pool

# Two-sided 95 % of the normal distribution.
Z = 1.95996398


def test_what_would_resolve_a_difference(folder):
    made = folder(benchmarks=["easy"])
    made.cell("easy", [0, 0, 0, 0], "grpo")
    made.cell("easy", [1, 0, 1, 0], "respo")
    (contrast,) = contrasts(pool(made.results))
    # Differences 1/2, 0, 1/2, 0: mean 1/4, variance (ddof 1) 1/12, of the mean 1/48. With one seed
    # more problems divide all of it: z^2 (1/48) / (1/4)^2.
    assert contrast.problems == pytest.approx(Z**2 / 48 / 0.25**2)
    # Sampling: p (1 - p) / K is estimated by c (K - c) / (K (K - 1)) / K = 1/4 on two of the four
    # problems, so 1/8 / 4 = 1/32, at most the whole 1/48: the same.
    assert contrast.samples == pytest.approx(contrast.problems)
    assert contrast.seeds != contrast.seeds  # one seed: not known
    assert contrast.verdict == "not resolved"


def test_seeds_that_would_resolve_a_difference(folder):
    made = folder(seeds=[1, 2], benchmarks=["easy"])
    for seed, grpo, respo in [(1, [0, 0], [2, 2]), (2, [1, 1], [0, 0])]:
        made.cell("easy", grpo, "grpo", seed=seed)
        made.cell("easy", respo, "respo", seed=seed)
    (contrast,) = contrasts(pool(made.results))
    # Differences by seed 1 and -1/2: mean 1/4, variance (ddof 1) 9/8, of the mean 9/16; problems
    # agree, so no number of them helps. Of S seeds t^2 18 / S must be less than 1: 18 * 1.99444^2 =
    # 71.6 is more than 71, 18 * 1.99394^2 less than 72.
    assert contrast.seeds == pytest.approx(72 / 2)
    assert contrast.problems == float("inf")
    assert contrast.verdict == "seeds disagree"


def test_no_difference_at_one_seed_is_not_the_same_sign(folder):
    made = folder(seeds=[1, 2], benchmarks=["easy"])
    for seed, respo in ((1, [2, 2]), (2, [0, 0])):
        made.cell("easy", [2, 2], "grpo", seed=seed)
        made.cell("easy", respo, "respo", seed=seed)
    (contrast,) = contrasts(pool(made.results))
    # Both problems lose 1/2 in the mean over seeds, so that the interval excludes zero.
    assert (contrast.by_seed, contrast.verdict) == ((0.0, -1.0), "seeds disagree")
    assert "or not the same sign (0 is of neither)" in VERDICTS


def test_seeds_that_agree_but_are_too_few_resolve_nothing(folder):
    made = folder(seeds=[1, 2], benchmarks=["easy"])
    for seed, respo in ((1, [1, 0]), (2, [2, 2])):
        made.cell("easy", [0, 0], "grpo", seed=seed)
        made.cell("easy", respo, "respo", seed=seed)
    rows = pool(made.results)
    (contrast,) = contrasts(rows)
    # By seed 1/4 and 1, both above zero, as are the problems' means 3/4 and 1/2 over seeds.
    assert contrast.by_seed == (0.25, 1.0)
    assert contrast.excludes_zero
    # The variance over seeds of the mean is (3/4)^2 / 2 / 2 = 9/64; problems differ no more than
    # noise. Of S seeds t^2 (9/64) 2 / S must be less than (5/8)^2, t^2 less than S / 0.72: with
    # five 7.71 is not less than 6.94, with six 6.61 is less than 8.33.
    assert contrast.seeds == pytest.approx(6 / 2)
    assert contrast.verdict == "more seeds"
    (line,) = section(made.results, rows).rows
    assert line[-1] == "3.0 (6)"


@pytest.mark.parametrize(
    ("easy", "verdict"),
    [
        # Macro averages 1/2, 1/2, 1: mean 2/3, standard error of three 1/6. Its ratio 4 is above
        # 1.96, but Student's t of two degrees of freedom is 4.303.
        (0, "more seeds"),
        # 3/4, 3/4, 1: mean 5/6, standard error 1/12, ratio 10.
        (1, "resolved"),
    ],
)
def test_three_seeds_count_by_students_t(folder, easy, verdict):
    made = folder(seeds=[1, 2, 3])
    for seed in (1, 2, 3):
        for benchmark in ("easy", "hard"):
            made.cell(benchmark, [0, 0], "grpo", seed=seed)
        made.cell("easy", [2 if seed == 3 else easy] * 2, "respo", seed=seed)
        made.cell("hard", [2, 2], "respo", seed=seed)
    (contrast,) = contrasts(pool(made.results))
    assert contrast.verdict == verdict


@pytest.mark.parametrize(
    ("seeds", "verdict"),
    [
        # All but one gain 1, one loses 1/2. Of four the mean is 5/8 and the standard error 3/8: the
        # ratio 1.7 is less than 3.18. Of eight 13/16 and 3/16: 4.3 is more than 2.36.
        (4, "seeds disagree"),
        (8, "resolved"),
    ],
)
def test_of_many_seeds_one_may_disagree(folder, seeds, verdict):
    made = folder(seeds=list(range(1, seeds + 1)), benchmarks=["easy"])
    for seed in range(1, seeds + 1):
        grpo, respo = (1, 0) if seed == 1 else (0, 2)
        made.cell("easy", [grpo, grpo], "grpo", seed=seed)
        made.cell("easy", [respo, respo], "respo", seed=seed)
    (contrast,) = contrasts(pool(made.results))
    assert contrast.verdict == verdict


def test_what_no_number_of_seeds_resolves_is_not_resolved(folder):
    made = folder(seeds=[1, 2], benchmarks=["easy"])
    for seed in (1, 2):
        made.cell("easy", [0, 0], "grpo", seed=seed)
        made.cell("easy", [2, 1], "respo", seed=seed)
    (contrast,) = contrasts(pool(made.results))
    # Seeds agree: their part is nothing, and two are enough. 3/4 exceeds 1.96 standard errors of
    # 1/4.
    assert (contrast.seeds, contrast.verdict) == (1, "resolved")
    # Percentiles of few problems may exclude zero where standard errors do not.
    assert contrast._replace(seeds=float("inf")).verdict == "not resolved"


def test_differences_of_some_seeds_are_marked(folder):
    made = folder(methods=["grpo", "gspo", "respo"], seeds=[1, 2], benchmarks=["easy"])
    for method, correct in (("grpo", 1), ("gspo", 0)):
        for seed in (1, 2):
            made.cell("easy", [correct, correct], method, seed=seed)
    made.cell("easy", [2, 2], "respo", seed=1)
    found = section(made.results, pool(made.results))
    marks = {row[3] + " - " + row[2]: row[7].partial for row in found.rows}
    assert marks == {"gspo - grpo": False, "respo - grpo": True, "respo - gspo": True}
    assert found.notes[-1] == "†: the two are not of all their seeds."
    # The best row is one with all its seeds, which here is the reference too.
    assert [row[3] + " - " + row[2] for row in found.shown] == ["gspo - grpo", "respo - grpo"]


def test_one_problem_tells_nothing_of_the_numbers_needed(folder):
    made = folder(benchmarks=["easy"])
    made.cell("easy", [0], "grpo")
    made.cell("easy", [1], "respo")
    (contrast,) = contrasts(pool(made.results))
    assert contrast.problems != contrast.problems


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (float("nan"), ""),
        (float("inf"), "never"),
        (0.2, "enough"),
        (1.0, "enough"),
        (1.01, "1.1"),  # not 1.0, which would be enough
        (1.1, "1.1"),
        (1.28, "1.3"),
        (1234.5, "1,234.5"),
    ],
)
def test_factors_are_printed(value, shown):
    assert factor(value) == shown


def test_numbers_that_resolve_a_difference(folder):
    made = folder(benchmarks=["easy"], seeds=[1, 2])
    for seed, correct in ((1, [2, 2, 1, 0]), (2, [2, 1, 1, 1])):
        made.cell("easy", correct, "grpo", seed=seed)
    for seed, correct in ((1, [2, 1, 1, 0]), (2, [2, 1, 1, 1])):
        made.cell("easy", correct, "respo", seed=seed)
    found = section(made.results, pool(made.results))
    files = render(Table("t", [], [], [], [found]), "s", "S", "0")
    (row,) = csv.DictReader(io.StringIO(files["contrasts.csv"]))
    for kind, now in (("problems", 4), ("samples", 2), ("seeds", 2)):
        times, count = row[f"{kind}_factor"], row[f"{kind}_needed"]
        # The least number that is more than so many times that of now, unless none is enough; of
        # seeds it is this number by that of now.
        more = 0 if kind == "seeds" else 1
        assert count == ("" if times == "inf" else str(int(now * float(times)) + more))
    assert any(row[f"{kind}_needed"] for kind in ("problems", "samples", "seeds"))
    assert factor(3.63, 8) == "3.7 (8)"


def test_the_side_of_zero_is_printed(folder):
    made = folder(benchmarks=["easy"])
    made.cell("easy", [1] * 4000, "grpo")
    made.cell("easy", [1] * 3997 + [0] * 3, "respo")
    (line,) = section(made.results, pool(made.results)).rows
    # Three halves of 4,000 less: -0.0375 points. One of twenty replicates draws none of the three,
    # so the upper end is zero itself.
    assert COLUMNS[7].show(line[7].value, line[7].digits) == "−0.04"
    assert line[10].endswith(", 0.0]")
    assert line[11] == "−0.04"


def test_what_verdicts_mean_stands_below(folder):
    made = folder(benchmarks=["easy"])
    for method in ("grpo", "respo"):
        made.cell("easy", [1, 1], method)
    found = section(made.results, pool(made.results))
    assert found.notes[0] == VERDICTS
    for verdict in ("Resolved:", "More seeds, or seeds disagree:", "One seed:", "Not resolved:"):
        assert verdict in VERDICTS
    # Student's t of 1, 2 and 4 degrees of freedom, from tables.
    assert "12.7 with two, 4.3 with three, 2.8 with five" in VERDICTS
