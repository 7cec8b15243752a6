"""`maspo/table2`, `5` and `7`, from cells of two samples a problem."""

import csv
import io

import pytest

from respo.reporting import table


def shown(text):
    """Return head and rows of the first table of a Markdown text."""
    lines = [line for line in text.split("\n\n")[2].splitlines() if "---" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_gains_over_the_reference(folder):
    made = folder(baselines=["small"])
    for benchmark in ("easy", "hard"):
        made.cell(benchmark, [0, 1], "baseline", staleness=0, seed=0)
        made.cell(benchmark, [1, 0], "grpo")
        made.cell(benchmark, [2, 1], "respo")
    files = table.make("maspo/table2", made.results)
    head, baseline, grpo, respo = shown(files["md"])
    assert head[3:] == [
        "Macro average avg@2",
        "Gain, avg@2",
        "Gain, seed sd",
        "Verdict",
        "Macro average pass@2",
        "Gain, pass@2",
        "Gain, seed sd",
        "Verdict",
    ]
    # Each problem gains 1/2, so the gain has no error; of pass@2 the second problem alone gains 1,
    # on each of two independent benchmarks: (1/4 / 2 / 2)^(1/2) = 1/4.
    assert grpo[3].startswith("25.0 ± ")
    assert (grpo[4:7], grpo[8:]) == ([""] * 3, [""] * 3)
    assert respo[3].startswith("**75.0** ± ")
    assert respo[4] == "+50.0 ± 0.0"
    assert respo[7] == "**100.0** ± 0.0"
    assert respo[8].startswith("+50.0 ± 2")
    # One seed has no spread. avg@2: all problems gain. pass@2: one of two, in many replicates none.
    assert respo[5:7] == ["", "one seed"]
    assert respo[9:] == ["", "not resolved"]
    # A model as it comes is compared with nothing.
    assert (baseline[2], baseline[4:7], baseline[8:]) == ("as it comes", [""] * 3, [""] * 3)
    row = list(csv.DictReader(io.StringIO(files["csv"])))[2]
    assert row["macro_avg_at_2_gain"] == "0.5"
    assert float(row["macro_pass_at_2_gain_standard_error"]) == pytest.approx(0.25, rel=0.03)
    assert "Gain: in points, over GRPO of the same model and N" in files["md"]


def test_gains_have_a_spread_over_seeds_and_a_verdict(folder):
    made = folder(seeds=[1, 2], benchmarks=["easy"])
    for seed, correct in ((1, [2, 2]), (2, [1, 1])):
        made.cell("easy", [0, 0], "grpo", seed=seed)
        made.cell("easy", correct, "respo", seed=seed)
    files = table.make("maspo/table2", made.results)
    _, _, respo = shown(files["md"])
    # avg@2 gains 1 and 1/2: mean 3/4, deviation 1/4, standard error over two seeds 1/4, and 3 is
    # less than Student's t of 12.7. pass@2 gains 1 at both.
    assert respo[4:7] == ["+75.0 ± 0.0", "25.0", "more seeds"]
    assert respo[8:] == ["+100.0 ± 0.0", "0.0", "resolved"]
    row = list(csv.DictReader(io.StringIO(files["csv"])))[1]
    assert row["macro_avg_at_2_gain_seed_sd"] == "0.25"
    assert row["macro_pass_at_2_gain_verdict"] == "resolved"
    assert "Verdict on the gain before it, as in respo/table1. Resolved: (1) " in files["md"]


def test_gains_that_are_not_known(folder):
    made = folder(staleness=[8, 16], methods=["gspo", "respo"])
    made.cell("easy", [1, 0], "respo")
    made.cell("hard", [1, 0], "respo")
    rows = shown(table.make("maspo/table2", made.results)["md"])[1:]
    # N = 8: the reference, GSPO, is missing. N = 16: both are.
    assert [row[3].split(" ")[0] for row in rows] == ["--", "25.0", "--", "--"]
    assert [row[4] for row in rows] == ["", "--", "", "--"]


def test_pass_at_k_for_growing_k(folder):
    made = folder(benchmarks=["easy"])
    made.cell("easy", [2, 1, 0, 1], "grpo")
    made.cell("easy", [1, 1, 1, 1], "respo")
    files = table.make("maspo/table7", made.results)
    head, grpo, respo = shown(files["md"])
    assert head == ["Model", "N", "Method", "Benchmark", "k = 1", "k = 2"]
    # By hand: 4 of 8 responses; 3 and 4 of 4 problems.
    assert [cell.split(" ±")[0] for cell in grpo[3:]] == ["Easy", "**50.0**", "75.0"]
    assert [cell.split(" ±")[0] for cell in respo[3:]] == ["Easy", "**50.0**", "**100.0**"]
    row = next(csv.DictReader(io.StringIO(files["csv"])))
    assert (row["benchmark"], row["pass_at_1"], row["pass_at_2"]) == ("easy", "0.5", "0.75")


def test_pass_at_k_is_the_unbiased_estimate_on_the_benchmarks_of_the_paper(paper):
    made = paper("respo")
    made.cells("grpo", "qwen3-1.7b-base", 8, [4, 0])
    files = table.make("maspo/table7", made.results)
    rows = list(csv.DictReader(io.StringIO(files["csv"])))
    # AMC23 has as many samples, but is not in the paper's table.
    assert {row["benchmark"] for row in rows} == {"aime25", "aime24"}
    # 1 - C(12, k) / C(16, k) of one problem of two, for k = 1, 2, 4, 8, 16.
    values = [float(rows[0][f"pass_at_{k}"]) for k in (1, 2, 4, 8, 16)]
    expected = [1 / 4, 1 - 66 / 120, 1 - 495 / 1820, 1 - 495 / 12870, 1]
    assert values == pytest.approx([value / 2 for value in expected])


def test_what_is_ranked_is_what_the_note_says(paper):
    made = paper("maspo")
    middle = "r1-distill-qwen-7b-8k"
    for method, correct in (
        ("maspo-a0.8-b0.03", 8), ("maspo", 16), ("maspo-a0.5-b0", 4),
        ("grpo", 2), ("clip-higher", 4), ("clip-higher-maspo", 1),
    ):  # fmt: skip
        made.cells(method, middle, 16, [correct, 0])
    text = table.make("maspo/table5", made.results)["md"]
    assert "Best value of a model, N and objective in bold, second of three or more und" in text
    # Each of the two sweeps has its best, GRPO's with 4 of 32 and 0 of 32.
    _, *rows = shown(text)
    best = {row[2] for row in rows if row[0] == "R1-Distill-7B" and row[7].startswith("**")}
    assert best == {"MASPO", "Clip Higher"}
    text = table.make("maspo/table7", made.results)["md"]
    assert "Best value of a model, N and benchmark in bold" in text


def test_labels_are_explained(paper):
    text = table.make("maspo/table6", paper("maspo").results)["md"]
    # One method of each objective: nothing to tell apart.
    assert "methods of one objective" not in text
    text = table.make("respo/table1", paper("maspo").results)["md"]
    assert "What tells methods of one objective apart: " in text
    assert "MASPO 0.5/0.03: alpha 0.5, beta_low 0.03, beta_high 0.03" in text
    assert "Clip Higher 0.265: epsilon_high 0.265" in text
    # An option of a run tells methods apart as well.
    assert "Entropy Reg.: epsilon_high 0.2, entropy_coefficient 0.0" in text


def test_a_sweep_shows_the_parameters_that_differ(paper):
    made = paper("maspo")
    middle = "r1-distill-qwen-7b-8k"
    made.cells("maspo-a0.8-b0.03", middle, 16, [32, 0])
    made.cells("maspo", middle, 16, [16, 0])
    head, *rows = shown(table.make("maspo/table5", made.results)["md"])
    assert head[:7] == [
        "Model", "N", "Method", "epsilon_high", "alpha", "beta_low", "beta_high",
    ]  # fmt: skip
    found = {(row[0], row[2]): row[3:] for row in rows}
    own = found["R1-Distill-7B", "MASPO"]
    assert own[:4] == ["", "0.3", "0.03", "0.03"]
    assert own[4].startswith("25.0 ± ")
    assert own[5].startswith("**50.0** ± ")  # pass@32: of two problems one
    other = found["R1-Distill-7B", "MASPO 0.8/0.03"]
    assert other[:4] == ["", "0.8", "0.03", "0.03"]
    assert other[4].startswith("**50.0** ± ")
    assert found["R1-Distill-7B", "Clip Higher 0.265"][:4] == ["0.265", "", "", ""]
    # 6 and 11 rows on two models, as in the selection of runs: an entropy bonus is no parameter.
    assert len(rows) == 17
    assert "Entropy Reg." not in {row[2] for row in rows}
