"""`respo/table5`, `6` and `7`: bins of log W. Bin 1 is (-5, -2], 4 is (-0.5, 0], 5 (0, 0.5]."""

import csv
import io

import pyarrow.parquet as pq
import pytest

from respo.cli import UserError
from respo.parquet import made_from, write_parquet
from respo.reporting import table

# Rollout batches of 8 updates: four of them.
BATCHES = [1] * 8 + [2] * 8 + [3] * 8 + [4] * 8


def written(folder, **study):
    """Bin 1: 2 responses, mass 3, 100 tokens; bin 4: 6, 1 and 60; over batches 1 and 2."""
    made = folder(methods=["grpo"], **study)
    made.branches({(1, 1): (1, 1.0, 40), (2, 1): (1, 2.0, 60), (2, 4): (6, 1.0, 60)}, "grpo")
    return made


def rows(made, id_):
    found = list(csv.DictReader(io.StringIO(table.make(id_, made.results)["csv"])))
    return {row.get("quantity") or int(row["rollout_batch"]): row for row in found}


def test_shares_masses_and_amplification(folder):
    found = rows(written(folder), "respo/table5")
    low, near, tail = "log_w_-5_-2", "log_w_-0.5_0", "log_w_-inf_-1"
    # By hand: 2 and 6 of 8 responses; 3 and 1 of 4 of the mass; their ratios.
    assert (found["share"][low], found["share"][near]) == ("0.25", "0.75")
    assert (found["mass"][low], found["mass"][near]) == ("0.75", "0.25")
    assert float(found["amplification"][low]) == 3.0
    assert float(found["amplification"][near]) == pytest.approx(1 / 3)
    # All up to -1 are those of bin 1; an empty bin has a share of 0 and no amplification.
    assert (found["share"][tail], found["amplification"][tail]) == ("0.25", "3.0")
    assert (found["share"]["log_w_5_inf"], found["amplification"]["log_w_5_inf"]) == ("0.0", "")
    assert found["share"][f"{low}_seed_sd"] == ""


def test_seeds_are_added_up_before_they_are_divided(folder):
    made = written(folder, seeds=[1, 2])
    made.branches({(1, 1): (8, 4.0, 80), (2, 5): (0, 0.0, 0)}, "grpo", seed=2)
    found = rows(made, "respo/table5")
    # 2 + 8 of 16 responses; by seed 1/4 and 1: a population deviation of 3/8.
    assert found["share"]["log_w_-5_-2"] == "0.625"
    assert found["share"]["log_w_-5_-2_seed_sd"] == "0.375"
    shown = table.make("respo/table5", made.results)["md"]
    assert "0.625 ± 0.375" in shown
    assert "population standard deviation (ddof 0) over seeds" in shown


def test_length_by_log_w(folder):
    found = rows(written(folder), "respo/table7")
    # 100 / 2 and 60 / 6 tokens; over all 160 / 8 = 20.
    assert [found[name]["log_w_-5_-2"] for name in ("responses", "length", "ratio")] == [
        "2", "50.0", "2.5",
    ]  # fmt: skip
    assert [found[name]["log_w_-0.5_0"] for name in ("responses", "length", "ratio")] == [
        "6", "10.0", "0.5",
    ]  # fmt: skip
    assert found["responses"]["log_w_-inf_-0.5"] == "2"
    assert found["length"]["log_w_2_5"] == ""


def test_lengths_counts_and_ratios_have_their_digits(folder):
    made = folder(methods=["grpo"], seeds=[1, 2])
    made.branches({(1, 1): (1200, 3.0, 3664800), (1, 4): (6, 1.0, 60)}, "grpo")
    text = table.make("respo/table7", made.results)["md"]
    lines = [line for line in text.splitlines() if line.startswith("| Small")]
    shown = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    # Bin 1 is the second; 3664800 / 1200 = 3054 tokens, all responses 3664860 / 1206 = 3038.86.
    # The second seed is missing.
    assert [row[5] for row in shown] == ["1,200†", "3,054.0†", "1.00†"]
    assert "† of some of the seeds alone: Small & dense, N = 8, GRPO: 1 of 2 seeds." in text


def metrics(made, seed=1, value=-0.5):
    log_w = [0.0, 2 * value] * 16
    made.metrics([0.0] * 32, log_w, "grpo", seed=seed, rollout_batch=BATCHES)


def test_rollout_batches(folder):
    made = folder(methods=["grpo"])
    sums = {(batch, 4): (1, 1.0, 10 * batch) for batch in (1, 2, 3, 4)}
    made.branches({**sums, (4, 5): (1, 3.0, 20)}, "grpo")
    metrics(made)
    found = rows(made, "respo/table6")
    assert list(found) == [1, 2, 4]
    assert (found[1]["log_w_-0.5_0"], found[4]["log_w_-0.5_0"]) == ("1.0", "0.25")
    # Of batch 4: 40 + 20 tokens of two responses; the mean of 0 and -1.
    assert (found[2]["mean_tokens"], found[4]["mean_tokens"]) == ("20.0", "30.0")
    assert found[4]["mean_log_w"] == "-0.5"


def test_rollout_batches_of_seeds(folder):
    made = folder(methods=["grpo"], seeds=[1, 2])
    for seed, value in ((1, -0.5), (2, -1.5)):
        made.branches({(b, 4): (1, 1.0, 10 * seed) for b in (1, 2, 3, 4)}, "grpo", seed=seed)
        metrics(made, seed, value)
    found = rows(made, "respo/table6")
    assert (found[4]["mean_log_w"], found[4]["mean_log_w_seed_sd"]) == ("-1.0", "0.5")
    assert (found[4]["mean_tokens"], found[4]["mean_tokens_seed_sd"]) == ("15.0", "5.0")


@pytest.mark.parametrize("id_", ["respo/table5", "respo/table6", "respo/table7"])
def test_missing_runs_are_named(folder, id_):
    made = folder()
    text = table.make(id_, made.results)["md"]
    line = next(line for line in text.splitlines() if line.startswith("| Small"))
    assert {cell.strip() for cell in line.split("|")[-5:-1]} == {"--"}
    files = 6 if id_ == "respo/table6" else 4
    assert f"Incomplete: {files} of {files} files of runs are missing" in text
    assert "small/grpo/N8/seed1/branches.parquet" in text


def test_only_the_largest_n_or_diagnostic_runs_are_shown(folder):
    short = {"methods": ["vespo"], "staleness": [8], "updates": 16, "evaluate": False}
    text = table.make("respo/table5", folder(staleness=[8, 16]).results)["md"]
    assert "| 16 " in text
    assert "| 8 " not in text
    text = table.make("respo/table5", folder(extra_runs=[short]).results)["md"]
    assert "VESPO" in text
    assert "GRPO" not in text


def test_bins_that_cannot_be_are_refused(folder):
    made = written(folder)
    made.branches({(1, 1): (1, 1.0, 40)}, "grpo")
    path = made.run("grpo").folder(made.path) / "branches.parquet"
    old = pq.read_table(path)
    bins = [b + 5 for b in old["bin"].to_pylist()]
    changed = old.set_column(old.column_names.index("bin"), "bin", [bins])
    write_parquet(path, changed, made_from(old))
    with pytest.raises(UserError, match=r"branches\.parquet: bins are counted from 0 to 9"):
        rows(made, "respo/table5")


def test_seeds_with_other_rollout_batches_are_refused(folder):
    made = written(folder, seeds=[1, 2])
    made.branches({(1, 1): (8, 4.0, 80)}, "grpo", seed=2)
    with pytest.raises(UserError, match="rollout_batch: is not that of the other seeds"):
        rows(made, "respo/table5")


def test_sums_of_another_configuration_are_refused(folder):
    made = written(folder)
    (made.run("grpo").folder(made.path) / "config.yaml").write_text("changed")
    with pytest.raises(UserError, match=r"branches\.parquet: was not made from the configuration"):
        rows(made, "respo/table5")


def test_why_these_runs_are_shown(folder):
    # 8 is the only N: nothing is left out.
    assert "Shown are" not in table.make("respo/table5", folder().results)["md"]
    text = table.make("respo/table5", folder(staleness=[8, 16]).results)["md"]
    assert "Shown are the runs of the largest N, 16: the more updates learn" in text
    assert "`branches.parquet` in the folder of every other run" in text
    alone = {"methods": ["vespo"], "staleness": [8], "updates": 16, "evaluate": False}
    text = table.make("respo/table6", folder(extra_runs=[alone]).results)["md"]
    assert "Shown are the runs that are trained for these sums alone, and not eval" in text
