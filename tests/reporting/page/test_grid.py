import pytest

from respo.reporting.page.grid import collect


def test_rows_with_estimates_errors_and_ranks(folder):
    made = folder()
    made.cell("easy", [2, 2], "grpo")
    made.cell("hard", [0, 2], "grpo")
    made.cell("easy", [1, 1], "respo")
    made.cell("hard", [2, 2], "respo")
    grpo, respo = collect(made.results)["rows"]
    assert (grpo["method"], grpo["N"], grpo["label"], grpo["seeds"]) == ("grpo", 8, "GRPO", [1])
    # Of two samples of each problem all are right: no error. Rank 1 is the best; of two values
    # none is the second.
    assert grpo["estimates"]["easy"] == {
        **{"value": 1.0, "text": "100.0", "error": "0.0", "rank": 1, "partial": None},
    }
    assert (respo["estimates"]["easy"]["text"], respo["estimates"]["easy"]["rank"]) == ("50.0", 3)
    # Means 0 and 1 of two problems: the mean of two draws has the standard deviation 1 / sqrt(8).
    hard = grpo["estimates"]["hard"]
    assert (hard["text"], hard["rank"]) == ("50.0", 3)
    assert float(hard["error"]) == pytest.approx(100 * 8**-0.5, rel=0.03)
    # Both macro averages are 0.75: a tie.
    assert [row["estimates"]["macro"]["text"] for row in (grpo, respo)] == ["75.0", "75.0"]
    assert [row["estimates"]["macro"]["rank"] for row in (grpo, respo)] == [1, 1]
    assert grpo["macro_by_seed"] == {1: "75.0"}


def test_values_of_some_seeds_are_marked_and_not_ranked(folder):
    made = folder(seeds=[1, 2], methods=["grpo", "gspo", "respo"], benchmarks=["easy"])
    for seed in (1, 2):
        made.cell("easy", [1, 1], "grpo", seed=seed)
        made.cell("easy", [0, 1], "gspo", seed=seed)
    made.cell("easy", [2, 2], "respo")
    found = collect(made.results)
    easy = [row["estimates"]["easy"] for row in found["rows"]]
    assert [(each["text"], each["rank"], each["partial"]) for each in easy] == [
        ("50.0", 1, None),
        ("25.0", 3, None),
        ("100.0", 3, "1 of 2 seeds"),
    ]
    assert any(note.startswith("†") and "ReSPO: 1 of 2 seeds" in note for note in found["marks"])


def test_counts_of_several_seeds_together(folder):
    made = folder(seeds=[1, 2], benchmarks=["easy"])
    made.cell("easy", [2, 0], "grpo", changes={"majority": 0.5})
    changes = {"majority": 1.0, "mean_response_tokens": 20.0, "truncated": 1000}
    made.cell("easy", [2, 0], "grpo", seed=2, changes=changes)
    grpo, respo = collect(made.results)["rows"]
    assert grpo["counts"]["easy"] == [
        *[("responses", "8"), ("no readable answer", "2"), ("out of time when checked", "0")],
        *[("failed when checked", "0"), ("cut at the limit", "1,001")],
        # The means of 10 and 20, and of 0.5 and 1.
        *[("mean length", "15.0 tokens"), ("majority vote", "75.0% right")],
    ]
    assert respo["counts"]["easy"] == []


def test_cells_with_counts_provenance_and_responses(folder, write_responses):
    made = folder()
    made.cell("easy", [2, 0], "grpo", changes={"majority": 0.5})
    write_responses(
        made, "easy", [("easy-0", 0, True, "six", "6"), ("easy-1", 0, False, "?", None)]
    )
    found = collect(made.results)
    cell = found["cells"]["small/grpo/N8/seed1/easy"]
    assert {name: cell[name] for name in cell if name != "samples"} == {
        "target": "small/grpo/N8/seed1/eval/32/easy/cell.json",
        "update": 32,
        "value": "50.0",
        "problems": 2,
        "counts": [
            *[("responses", "4"), ("no readable answer", "1"), ("out of time when checked", "0")],
            *[("failed when checked", "0"), ("cut at the limit", "1")],
            *[("mean length", "10.0 tokens"), ("majority vote", "50.0% right")],
        ],
        "made_from": {"verifier": "strict_box"},
    }
    assert [(s["problem"], s["correct"], s["response"]) for s in cell["samples"]] == [
        ("easy-0", True, "six"),
        ("easy-1", False, "?"),
    ]
    # Once for all runs.
    assert found["problems"]["easy"]["easy-0"] == {
        "prompt": "prompt of easy-0",
        "answer": "gold of easy-0",
    }


def test_a_cell_without_vote_and_responses(folder):
    made = folder()
    made.cell("easy", [2, 0], "grpo")
    cell = collect(made.results)["cells"]["small/grpo/N8/seed1/easy"]
    assert cell["counts"][-1] == ("majority vote", "--")
    assert cell["samples"] == []


def test_what_is_missing_has_its_target_and_no_value(folder):
    made = folder()
    made.cell("easy", [2, 0], "grpo")
    found = collect(made.results)
    grpo, respo = found["rows"]
    assert grpo["estimates"]["hard"] is None
    assert grpo["estimates"]["macro"] is None
    assert set(respo["estimates"].values()) == {None}
    assert found["cells"]["small/respo/N8/seed1/hard"] == {
        "target": "small/respo/N8/seed1/eval/32/hard/cell.json"
    }
