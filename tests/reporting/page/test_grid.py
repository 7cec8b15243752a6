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
    # Of two samples of each problem all are right: no error. Rank 1 is the best, 2 the second.
    assert grpo["estimates"]["easy"] == [1.0, 0.0, 1]
    assert respo["estimates"]["easy"] == [0.5, 0.0, 2]
    # Means 0 and 1 of two problems: the mean of two draws has the standard deviation 1 / sqrt(8).
    value, error, rank = grpo["estimates"]["hard"]
    assert (value, rank) == (0.5, 2)
    assert error == pytest.approx(8**-0.5, rel=0.03)
    # Both macro averages are 0.75: a tie.
    assert [row["estimates"]["macro"][0] for row in (grpo, respo)] == [0.75, 0.75]
    assert [row["estimates"]["macro"][2] for row in (grpo, respo)] == [1, 1]
    assert grpo["macro_by_seed"] == {"1": 0.75}


def test_cells_with_counts_provenance_and_responses(folder, write_responses):
    made = folder()
    path = made.cell("easy", [2, 0], "grpo", changes={"majority": 0.5})
    write_responses(
        made, "easy", [("easy-0", 0, True, "six", "6"), ("easy-1", 0, False, "?", None)]
    )
    found = collect(made.results)
    cell = found["cells"]["small/grpo/N8/seed1/easy"]
    assert {name: cell[name] for name in cell if name != "samples"} == {
        "target": str(path),
        "update": 32,
        "value": 0.5,
        "problems": 2,
        **{"responses": 4, "unparsed": 1, "timed_out": 0, "failed": 0, "truncated": 1},
        "mean_response_tokens": 10.0,
        "majority": 0.5,
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
    assert cell["majority"] is None
    assert cell["samples"] == []


def test_what_is_missing_has_its_target_and_no_value(folder):
    made = folder()
    made.cell("easy", [2, 0], "grpo")
    found = collect(made.results)
    grpo, respo = found["rows"]
    assert grpo["estimates"]["hard"] is None
    assert grpo["estimates"]["macro"] is None
    assert set(respo["estimates"].values()) == {None}
    target = made.path / "small/respo/N8/seed1/eval/32/hard/cell.json"
    assert found["cells"]["small/respo/N8/seed1/hard"] == {"target": str(target)}
