import csv
import io

import pyarrow as pa
import pytest

from respo.cli import UserError
from respo.parquet import write_parquet
from respo.reporting import table

ID = "respo/table4"


def rows(made):
    return list(csv.DictReader(io.StringIO(table.make(ID, made.results)["csv"])))


def test_bounds_counts_and_accuracy(folder):
    made = folder(benchmarks=["easy"])
    # 18 lengths 1, 2, ..., 18 below the limit of 64: two in each of nine bins. Two at the limit.
    grpo = [("a", length % 2 == 0, length) for length in range(1, 10)] + [("b", False, 64)]
    respo = [("a", True, length) for length in range(10, 19)] + [("b", True, 64)]
    made.scores("easy", grpo, "grpo")
    made.scores("easy", respo, "respo")
    found = rows(made)
    assert [row["bin"] for row in found] == [f"Q{q}" for q in range(1, 11)]
    assert [int(row["upper_bound"]) for row in found] == [2, 4, 6, 8, 10, 12, 14, 16, 18, 64]
    assert [int(row["grpo_responses"]) for row in found] == [2, 2, 2, 2, 1, 0, 0, 0, 0, 1]
    assert [int(row["respo_responses"]) for row in found] == [0, 0, 0, 0, 1, 2, 2, 2, 2, 1]
    # Of lengths 1 and 2 one is correct, of 9 none; where there is no response, no accuracy.
    assert [row["grpo_accuracy"] for row in found] == ["0.5"] * 4 + ["0.0", "", "", "", "", "0.0"]
    assert found[9]["respo_accuracy"] == "1.0"
    # One problem alone tells no error.
    assert found[0]["grpo_accuracy_standard_error"] == ""


def test_an_empty_bin_has_no_bound(folder):
    made = folder(methods=["grpo"], benchmarks=["easy"])
    # Nine tenths have the same length, so that they fill a bin and those beside it are empty.
    made.scores("easy", [("a", True, 5)] * 9 + [("a", True, 7)], "grpo")
    found = rows(made)
    counts = [int(row["grpo_responses"]) for row in found]
    assert sorted(counts, reverse=True)[:3] == [9, 1, 0]
    bounds = {row["upper_bound"] for row in found if row["grpo_responses"] == "0"}
    assert bounds == {""}
    lines = [line for line in table.make(ID, made.results)["md"].splitlines() if "| Q" in line]
    assert "| Q10 (cap) |" in lines[9]
    assert found[9]["bin"] == "Q10"


def test_what_is_missing_is_not_zero(folder):
    made = folder(benchmarks=["easy"], staleness=[8, 16])
    made.scores("easy", [("a", True, 5), ("a", True, 6)], "grpo")
    files = table.make(ID, made.results)
    lines = [line for line in files["md"].splitlines() if line.startswith("| Small")]
    first = [cell.strip() for cell in lines[0].strip("|").split("|")]
    assert first == ["Small & dense", "8", "Q1", "5", "1", "--"]
    other = [cell.strip() for cell in lines[10].strip("|").split("|")]
    assert other == ["Small & dense", "16", "Q1", "--", "--", "--"]
    assert "Incomplete: 3 of 4 files of scores are missing" in files["md"]
    assert f"{made.path}/small/respo/N8/seed1/eval/32/easy/scores.parquet" in files["md"]


def test_a_method_of_another_block_is_not_missing(folder):
    extra = {"methods": ["gspo"], "staleness": [16]}
    made = folder(methods=["grpo"], benchmarks=["easy"], extra_runs=[extra])
    made.scores("easy", [("a", True, 5)], "grpo")
    made.scores("easy", [("a", True, 7)], "gspo", staleness=16)
    found = rows(made)
    assert (found[0]["grpo_responses"], found[0]["gspo_responses"]) == ("1", "")
    assert (found[10]["grpo_responses"], found[10]["gspo_responses"]) == ("", "1")
    lines = [line for line in table.make(ID, made.results)["md"].splitlines() if "| Q1 " in line]
    assert "--" not in "".join(lines)


def test_a_file_with_gaps_is_refused(folder):
    made = folder(benchmarks=["easy"])
    path = made.scores("easy", [("a", True, None), ("a", True, 6)], "grpo")
    with pytest.raises(UserError, match=r"scores\.parquet: response_tokens: has gaps"):
        rows(made)
    assert path.is_file()


def test_a_file_without_lengths_is_refused(folder):
    made = folder(benchmarks=["easy"])
    path = made.scores("easy", [("a", True, 6)], "grpo")
    write_parquet(path, pa.table({"problem_id": ["a"], "correct": [True]}), {})
    with pytest.raises(UserError, match="column 'response_tokens' is missing"):
        rows(made)
