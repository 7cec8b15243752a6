from respo.reporting import missing


def test_what_is_missing_is_named(folder):
    assert missing.named("runs", [], 3) == ""
    note = missing.named("runs", list("abcdef"), 8)
    assert note == "\n6 of 8 runs missing: a, b, c, d and 2 more"
    made = folder(methods=["grpo"], seeds=[1, 2])
    made.metrics([0.0] * 32, [0.0] * 32, "grpo")
    assert missing.runs(made.results, made.study.runs()) == (
        "\n1 of 2 runs missing: small/grpo/N8/seed2"
        "\nlines of some of the seeds alone: Small & dense, N = 8, GRPO: 1 of 2"
    )
    made.metrics([0.0] * 32, [0.0] * 32, "grpo", seed=2)
    assert missing.runs(made.results, made.study.runs()) == ""


def test_points_of_some_seeds_are_named(folder):
    evaluation = {"updates": [16, 32], "temperature": 1.0, "top_p": 0.7, "seed": 0}
    made = folder(
        methods=["grpo"], seeds=[1, 2], staleness=[8, 16, 32],
        checkpoints=[16, 32], evaluation=evaluation,
    )  # fmt: skip
    for staleness in (8, 16):
        made.cell("easy", [1], "grpo", staleness)
    runs = made.study.runs()
    # Of the last update alone, then of both; a mean without any seed is missing, and not named.
    last = missing.cells(made.results, runs, ["easy"], last=True)
    assert last.startswith("\n4 of 6 cells missing: small/grpo/N8/seed2/eval/32/easy/cell.json, ")
    assert last.endswith(
        "\n† of some of the seeds alone: Small & dense, N = 8, GRPO, update 32: 1 of 2; "
        "Small & dense, N = 16, GRPO, update 32: 1 of 2"
    )
    assert missing.cells(made.results, runs, ["easy"]).startswith("\n10 of 12 cells missing: ")
    # With the other benchmark no seed has all, and no point is drawn.
    assert "†" not in missing.cells(made.results, runs, ["easy", "hard"])


def test_long_lists_end(folder):
    made = folder(methods=["grpo", "gspo", "vespo"], seeds=[1, 2], staleness=[8, 16])
    for run in made.study.runs():
        if run.seed == 1:
            made.metrics([0.0] * 32, [0.0] * 32, run.method, run.staleness)
    note = missing.runs(made.results, made.study.runs())
    assert note.count(": 1 of 2") == 4
    assert note.endswith("; and 2 more")
