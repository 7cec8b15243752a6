import csv
import io

import pytest

from respo.reporting.contrasts import contrasts, factor, section
from respo.reporting.layout import Table, render
from respo.reporting.rows import pool


def test_what_would_resolve_a_difference(folder):
    made = folder(benchmarks=["easy"])
    made.cell("easy", [0, 0, 0, 0], "grpo")
    made.cell("easy", [1, 0, 1, 0], "respo")
    (contrast,) = contrasts(pool(made.results))
    # Differences 1/2, 0, 1/2, 0: mean 1/4, variance (ddof 1) 1/12, of the mean 1/48. With one seed
    # more problems divide all of it: (1/48) / (1/4 / 1.96)^2.
    assert contrast.problems == pytest.approx((1 / 48) / (0.25 / 1.96) ** 2)
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
    # agree, so no number of them helps.
    assert contrast.seeds == pytest.approx((9 / 16) / (0.25 / 1.96) ** 2)
    assert contrast.problems == float("inf")


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
    # The variance over seeds of the mean, (3/4)^2 / 2 / 2 = 9/64, is larger than the part of
    # problems and seeds together and the same as all of it: 9/64 / (5/8 / 1.96)^2 = 1.38.
    assert contrast.seeds == pytest.approx((9 / 64) / (0.625 / 1.96) ** 2)
    assert contrast.verdict == "more seeds"
    (line,) = section(made.results, rows).rows
    assert line[-1] == "1.4 (3)"  # more than 1.38 times two seeds


def test_what_no_number_of_seeds_resolves_is_not_resolved(folder):
    made = folder(seeds=[1, 2], benchmarks=["easy"])
    for seed in (1, 2):
        made.cell("easy", [0, 0], "grpo", seed=seed)
        made.cell("easy", [2, 1], "respo", seed=seed)
    (contrast,) = contrasts(pool(made.results))
    # Seeds agree: their part is nothing. 3/4 exceeds 1.96 standard errors of 1/4.
    assert (contrast.seeds, contrast.verdict) == (0, "resolved")
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
    assert "†: the two are not of all their seeds" in found.text
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
        # The least number that is more than so many times that of now, unless none is enough.
        assert count == ("" if times == "inf" else str(int(now * float(times)) + 1))
    assert any(row[f"{kind}_needed"] for kind in ("problems", "samples", "seeds"))
    assert factor(3.63, 8) == "3.7 (8)"
