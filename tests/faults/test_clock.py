"""The clock was set back: results are of the future, or older than what they are made from."""

import os
import time

import pytest

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("pattern", ["*.yaml", "*.parquet", "*.json"])
def test_files_of_the_future_remake_no_result(finished, would_run, products, pattern):
    future = time.time() + 86400
    for path in (finished / "results").rglob(pattern):
        os.utime(path, (future, future))
    assert would_run(finished).keys() <= products


def test_a_study_is_completed_after_the_clock_was_set_back(
    finished, unbroken, snakemake, would_run, differences
):
    future = time.time() + 86400
    for path in (finished / "results").rglob("*"):
        os.utime(path, (future, future))
    folder = finished / "results/mini/mini/grpo/N1/seed1/eval/4/easy"
    for name in ("scores.parquet", "cell.json"):
        (folder / name).unlink()
    result = snakemake(finished)
    assert result.returncode == 0, result.stdout
    assert would_run(finished) == {}
    assert differences(unbroken, finished) == ""
