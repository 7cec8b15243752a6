import math

import numpy as np
import pytest

from respo.cli import UserError
from respo.reporting.contrasts import contrasts
from respo.reporting.rows import MACRO, pool

# Bootstrap errors are themselves estimates: with 10,000 replicates good to about 1 %.
NEARLY = 0.03


def test_values_and_errors_of_a_row(folder):
    made = folder(methods=["grpo"])
    made.cell("easy", [2, 1], "grpo")
    made.cell("hard", [2, 2, 0, 0], "grpo")
    (row,) = pool(made.results)
    # By hand: (1 + 1/2) / 2; (1 + 1 + 0 + 0) / 4; their mean.
    values = {column: estimate.value for column, estimate in row.estimates.items()}
    assert values == {"easy": 0.75, "hard": 0.5, MACRO: 0.625}
    # A mean of m draws has the population variance / m: 1/16 / 2 and 1/4 / 4; independent
    # benchmarks add, and the mean of two halves the error.
    assert row.estimates["easy"].error == pytest.approx(math.sqrt(1 / 32), rel=NEARLY)
    assert row.estimates["hard"].error == pytest.approx(1 / 4, rel=NEARLY)
    assert row.estimates[MACRO].error == pytest.approx(math.sqrt(1 / 32 + 1 / 16) / 2, rel=NEARLY)
    assert (row.complete_seeds, row.seed_sd) == (1, None)
    assert [row.total(c) for c in ("responses", "unparsed", "timed_out", "truncated")] == [
        12, 2, 0, 2,
    ]  # fmt: skip
    assert row.mean_response_tokens() == 10.0


def test_mean_response_tokens_weighs_responses(folder):
    made = folder(methods=["grpo"])
    made.cell("easy", [1], "grpo", changes={"mean_response_tokens": 40.0})
    made.cell("hard", [1, 1, 1], "grpo", changes={"mean_response_tokens": 20.0})
    # (2 * 40 + 6 * 20) / 8
    assert pool(made.results)[0].mean_response_tokens() == 25.0


def test_a_problem_is_one_cluster_over_seeds(folder):
    made = folder(methods=["grpo"], seeds=[1, 2], benchmarks=["easy"])
    # Seeds disagree on each problem, but each problem's mean is 1/2: nothing to resample.
    made.cell("easy", [2, 0], "grpo", seed=1)
    # The order of the problems does not matter.
    made.cell("easy", [2, 0], "grpo", seed=2, ids=["easy-1", "easy-0"])
    (row,) = pool(made.results)
    assert row.estimates["easy"] == (0.5, 0.0)
    assert (row.complete_seeds, row.seed_sd) == (2, 0.0)


def test_seed_sd_is_of_the_macro_average_with_ddof_0(folder):
    made = folder(methods=["grpo"], seeds=[1, 2])
    made.cell("easy", [2, 2], "grpo", seed=1)
    made.cell("hard", [1, 1], "grpo", seed=1)
    made.cell("easy", [1, 1], "grpo", seed=2)
    made.cell("hard", [0, 0], "grpo", seed=2)
    (row,) = pool(made.results)
    # Macro averages 3/4 and 1/4: mean 1/2, deviations of 1/4 each.
    assert row.estimates[MACRO].value == 0.5
    assert row.seed_sd == 0.25


def test_missing_cells_leave_gaps_not_zeros(folder):
    made = folder(seeds=[1, 2])
    made.cell("easy", [2, 2], "grpo", seed=1)
    made.cell("hard", [1, 1], "grpo", seed=1)
    made.cell("easy", [1, 1], "grpo", seed=2)
    grpo, respo = pool(made.results)
    # easy is the mean of two seeds, hard of one: their average would compare unlike things.
    assert grpo.estimates["easy"].value == 0.75
    assert grpo.estimates["hard"].value == 0.5
    assert MACRO not in grpo.estimates
    assert (grpo.complete_seeds, grpo.seed_sd) == (1, None)
    assert (respo.estimates, respo.complete_seeds) == ({}, 0)
    assert respo.mean_response_tokens() is None


def test_one_seed_of_two_gives_a_macro_average_of_one(folder):
    made = folder(methods=["grpo"], seeds=[1, 2])
    made.cell("easy", [2, 2], "grpo", seed=2)
    made.cell("hard", [1, 1], "grpo", seed=2)
    (row,) = pool(made.results)
    assert row.estimates[MACRO] == (0.75, 0.0)
    assert row.complete_seeds == 1


def test_all_rows_see_the_same_draws_even_with_gaps(folder):
    made = folder()
    for method in ("grpo", "respo"):
        made.cell("hard", [2, 1, 0, 0, 2], method)
    made.cell("easy", [2, 1], "grpo")
    grpo, respo = pool(made.results)
    assert grpo.estimates["hard"] == respo.estimates["hard"]


def test_cells_of_a_benchmark_must_hold_the_same_problems(folder):
    made = folder()
    made.cell("easy", [2, 1], "grpo")
    path = made.cell("easy", [2, 1], "respo", ids=["easy-0", "easy-7"])
    with pytest.raises(UserError) as error:
        pool(made.results)
    assert str(error.value).startswith(f"{path}: problems: are not those of the other cells")


def test_rows_follow_the_study_with_the_on_policy_reference_first(folder):
    made = folder(staleness=[16, 8], extra_runs=[{"methods": ["grpo"], "staleness": [1]}])
    assert [(row.staleness, row.method) for row in pool(made.results)] == [
        (1, "grpo"), (8, "grpo"), (8, "respo"), (16, "grpo"), (16, "respo"),
    ]  # fmt: skip


def test_contrasts_are_paired_by_problem(folder):
    made = folder(methods=["grpo", "gspo", "respo"], benchmarks=["easy"])
    made.cell("easy", [1, 0, 1, 0], "grpo")
    made.cell("easy", [2, 1, 2, 1], "gspo")
    made.cell("easy", [0, 1, 0, 1], "respo")
    found = {(c.second.method, c.first.method): c for c in contrasts(pool(made.results))}
    assert list(found) == [("gspo", "grpo"), ("respo", "grpo"), ("respo", "gspo")]
    # Each problem gains exactly 1/2: unpaired draws would spread by 0.18, paired ones not at all.
    gain = found["gspo", "grpo"]
    assert (gain.difference, gain.low, gain.high) == (0.5, 0.5, 0.5)
    assert (gain.by_seed, gain.verdict) == ((0.5,), "one seed")
    # Problem differences -1/2, 1/2, -1/2, 1/2: mean 0, and the interval covers it. A mean of four
    # such draws is -1/2 with probability 1/16 > 2.5 %, so the ends are the extremes.
    even = found["respo", "grpo"]
    assert (even.difference, even.low, even.high) == (0.0, -0.5, 0.5)
    assert even.verdict == "not resolved"
    assert found["respo", "gspo"].difference == -0.5


def test_contrasts_stay_within_a_model_and_n_and_need_both(folder):
    made = folder(staleness=[8, 16])
    for method, staleness in [("grpo", 8), ("grpo", 16), ("respo", 16)]:
        made.cell("easy", [1, 1], method, staleness)
        made.cell("hard", [1, 1], method, staleness)
    (contrast,) = contrasts(pool(made.results))
    assert (contrast.first.staleness, contrast.first.method) == (16, "grpo")
    assert (contrast.second.staleness, contrast.second.method) == (16, "respo")
    assert (contrast.low, contrast.high, contrast.verdict) == (0, 0, "not resolved")


def test_seeds_that_agree_resolve_what_the_problems_resolve(folder):
    made = folder(seeds=[1, 2], benchmarks=["easy"])
    for seed in (1, 2):
        made.cell("easy", [0, 0], "grpo", seed=seed)
        made.cell("easy", [2, 2], "respo", seed=seed)
    (contrast,) = contrasts(pool(made.results))
    assert contrast.by_seed == (1.0, 1.0)
    assert (contrast.low, contrast.high, contrast.verdict) == (1.0, 1.0, "resolved")


def test_seeds_that_disagree_resolve_nothing(folder):
    made = folder(seeds=[1, 2], benchmarks=["easy"])
    for seed, grpo, respo in [(1, [0, 0], [2, 2]), (2, [1, 1], [0, 0])]:
        made.cell("easy", grpo, "grpo", seed=seed)
        made.cell("easy", respo, "respo", seed=seed)
    (contrast,) = contrasts(pool(made.results))
    # Means over seeds: 1/4 and 1/2 on each problem, so other problems change nothing.
    assert (contrast.low, contrast.high) == (0.25, 0.25)
    assert contrast.by_seed == (1.0, -0.5)
    assert contrast.verdict == "seeds disagree"


def test_macro_replicates_are_those_of_the_error(folder):
    made = folder(methods=["grpo"])
    made.cell("easy", [2, 1], "grpo")
    made.cell("hard", [2, 0], "grpo")
    (row,) = pool(made.results)
    assert len(row.bootstrap.macro_replicates_R) == 10_000
    assert row.estimates[MACRO].error == pytest.approx(
        np.std(row.bootstrap.macro_replicates_R), rel=1e-3
    )


def test_of_pass_at_k_the_estimate_is_compared(folder):
    made = folder(seeds=[1, 2], benchmarks=["easy"])
    for seed, correct in ((1, [2, 1, 0]), (2, [0, 0, 1])):
        made.cell("easy", correct, "grpo", seed=seed, ids=["c", "a", "b"])
    one, both = (pool(made.results, tries={"easy": k})[0] for k in (1, 2))
    # In the order of the names a, b, c; of two samples one correct one is enough.
    correct_SP, samples_SP = one.counts("easy", [1, 2])
    assert correct_SP.tolist() == [[1, 0, 2], [0, 1, 0]]
    assert samples_SP.tolist() == [[2, 2, 2], [2, 2, 2]]
    correct_SP, samples_SP = both.counts("easy", [1, 2])
    assert correct_SP.tolist() == [[1, 0, 1], [0, 1, 0]]
    assert samples_SP.tolist() == [[1, 1, 1], [1, 1, 1]]
