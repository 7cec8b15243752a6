"""avg@K and pass@K: `aspo/table1` to `4`, `maspo/table1` and `6`."""

import csv
import io

import pytest

from respo.cli import UserError
from respo.reporting import table


def shown(text):
    """Return head and rows of the first table of a Markdown text."""
    lines = [line for line in text.split("\n\n")[2].splitlines() if "---" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_avg_and_pass_stand_side_by_side(folder):
    made = folder()
    made.cell("easy", [2, 1, 0, 0], "grpo")
    made.cell("hard", [1, 1, 1, 1], "grpo")
    made.cell("easy", [2, 2, 0, 0], "respo")
    made.cell("hard", [1, 1, 0, 0], "respo")
    files = table.make("aspo/table1", made.results)
    head, grpo, respo = shown(files["md"])
    assert head[3:9] == [
        "Easy avg@2", "Easy pass@2", "Hard avg@2", "Hard pass@2",
        "Macro average avg@2", "Macro average pass@2",
    ]  # fmt: skip
    values = [cell.split(" ±")[0] for cell in grpo[3:9]]
    # By hand: (1 + 1/2) / 4, 2 of 4 solved; 1/2 each, all solved; their means.
    assert values == [
        "37.5", "**50.0**", "**50.0**", "**100.0**", "**43.8**", "**75.0**"
    ]  # fmt: skip
    values = [cell.split(" ±")[0] for cell in respo[3:9]]
    assert values == [
        "**50.0**", "**50.0**", "25.0", "50.0", "37.5", "50.0"
    ]  # fmt: skip
    row = next(csv.DictReader(io.StringIO(files["csv"])))
    assert (row["easy_avg_at_2"], row["easy_pass_at_2"]) == ("0.375", "0.5")
    # Solved by two tries are problems 1, 1, 0, 0: a variance of 1/4 over 4 problems.
    error = float(row["easy_pass_at_2_standard_error"])
    assert error == pytest.approx((1 / 16) ** 0.5, rel=0.03)
    assert "avg@K, the mean share of correct responses of K, and pass@K" in files["md"]


def test_pass_at_k_is_a_mean_over_seeds(folder):
    made = folder(methods=["grpo"], seeds=[1, 2], benchmarks=["easy"])
    made.cell("easy", [1, 0], "grpo", seed=1)
    made.cell("easy", [1, 1], "grpo", seed=2)
    _, row = shown(table.make("aspo/table1", made.results)["md"])
    # Solved are one of two problems and both of them; correct 1/4 and 1/2 of the responses.
    assert [cell.split(" ±")[0] for cell in row[3:5]] == ["37.5", "75.0"]


def test_missing_cells_are_named_with_the_table(folder):
    made = folder()
    made.cell("easy", [1, 1], "grpo")
    text = table.make("maspo/table1", made.results)["md"]
    _, grpo, respo = shown(text)
    assert grpo[3:9] == ["50.0 ± 0.0", "100.0 ± 0.0", "--", "--", "--", "--"]
    assert respo[3:9] == ["--"] * 6
    assert "Incomplete: 3 of 4 cells are missing (--)" in text
    assert f"snakemake {made.path}/tables/maspo/table1.md" in text


def test_tables_that_are_the_same_say_so(folder):
    both = {"tables": ["aspo/table1", "maspo/table1", "maspo/table2", "respo/table1"]}
    text = table.make("aspo/table1", folder(**both).results)["md"]
    assert "- In this study `maspo/table1` shows the same: the two differ where" in text
    text = table.make("maspo/table1", folder(**both).results)["md"]
    assert "- In this study `aspo/table1` shows the same: " in text
    assert text.count("In this study") == 1
    alone = table.make("maspo/table1", folder(tables=["maspo/table1"]).results)["md"]
    assert "In this study" not in alone


def test_each_verifier_has_its_table(paper):
    made = paper("aspo")
    for method in ("grpo", "aspo", "grpo-no-is"):
        made.cells(method, "qwen3-4b", 4, [1, 1])
    math = table.make("aspo/table1", made.results)["md"]
    choice = table.make("aspo/table3", made.results)["md"]
    # K of the paper, Table 1; the choice benchmarks show an accuracy.
    assert [head for head in shown(math)[0] if head.endswith("avg@64")] == [
        "AIME24 avg@64", "AIME25 avg@64", "AMC23 avg@64"
    ]  # fmt: skip
    assert "Minerva" not in choice
    assert not [head for head in shown(choice)[0] if "@" in head]
    assert "Macro average avg@K" in shown(math)[0]  # K differs
    # Methods beside the study's own are in Table 4 alone, which has avg@K alone.
    assert "w/o IS" not in math
    ablations = shown(table.make("aspo/table4", made.results)["md"])
    assert [row[2] for row in ablations[1:]] == [
        "GRPO", "ASPO", "GRPO w/o IS", "GRPO pos. mean IS", "ASPO w/o dual clip",
    ]  # fmt: skip
    assert not [head for head in ablations[0] if "pass@" in head]


def test_programs(paper):
    made = paper("aspo-code")
    head, *rows = shown(table.make("aspo/table2", made.results)["md"])
    assert [name.rsplit(" ", 1)[1] for name in head[3:7]] == [
        "avg@8", "pass@8", "avg@16", "pass@16",
    ]  # fmt: skip
    assert "as it comes" in {row[2] for row in rows}


def test_models_beside_the_grid(paper):
    made = paper("maspo")
    _, *rows = shown(table.make("maspo/table6", made.results)["md"])
    assert [row[:3] for row in rows] == [
        ["R1-Distill-14B", "16", "GRPO"], ["R1-Distill-14B", "16", "MASPO 0.5/0.03"],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("id_", "reason"),
    [
        ("aspo/table2", "shows benchmarks with verifier code, and the study has none"),
        ("aspo/table3", "shows benchmarks with verifier choice, and the study has none"),
        ("aspo/table4", "shows methods beside the study's own (extra_runs), and no evaluated run"),
        ("maspo/table5", "shows at least 3 sets of parameters of one objective"),
        ("maspo/table6", "shows models that only extra_runs name, and the study has none"),
        ("respo/table8", "shows runs with routing replay beside those without"),
    ],
)
def test_tables_that_cannot_be_made_say_why(folder, id_, reason):
    made = folder()
    with pytest.raises(UserError) as error:
        table.make(id_, made.results)
    assert str(error.value).startswith(f"{made.path}/study.yaml: tables: {id_} {reason}")


TRAINED = ["respo/table2", "respo/table3", "respo/table4", "respo/table5", "respo/table8"]
TRAINED += ["maspo/table2", "maspo/table5", "maspo/table6", "aspo/table4"]


@pytest.mark.parametrize("id_", TRAINED)
def test_a_study_of_models_as_they_come_has_nothing_of_training(folder, id_):
    made = folder(methods=[], figures=[], baselines=["small"])
    with pytest.raises(UserError, match=f"tables: {id_} shows "):
        table.make(id_, made.results)


@pytest.mark.parametrize("id_", ["respo/table1", "aspo/table1", "maspo/table7"])
def test_models_as_they_come_alone(folder, id_):
    made = folder(methods=[], figures=[], baselines=["small"])
    for benchmark in ("easy", "hard"):
        made.cell(benchmark, [1, 0], "baseline", staleness=0, seed=0)
    text = table.make(id_, made.results)["md"]
    assert shown(text)[1][2] == "as it comes"
    assert "checkpoint" not in text


def test_mathematics_needs_a_benchmark_of_it(paper):
    with pytest.raises(UserError, match="aspo/table1 shows benchmarks with verifier math_verify"):
        table.make("aspo/table1", paper("aspo-code").results)
