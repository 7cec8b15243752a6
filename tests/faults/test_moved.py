"""Results that were moved or copied, with and without their times: nothing is trained again."""

import shutil

import pytest

pytestmark = pytest.mark.faults


def copy(source, target, times):
    shutil.copytree(source, target, copy_function=shutil.copy2 if times else shutil.copy)


def test_a_checkout_that_was_moved(finished, would_run):
    moved = finished.rename(finished.with_name("moved"))
    assert would_run(moved) == {}


@pytest.mark.parametrize("times", [True, False])
def test_a_checkout_that_was_copied(finished, would_run, times, products):
    copied = finished.with_name("copied")
    copy(finished, copied, times)
    assert would_run(copied).keys() <= products


@pytest.mark.parametrize("times", [True, False])
def test_results_that_were_copied_to_another_checkout(
    empty, finished, would_run, tmp_path, times, products
):
    checkout = tmp_path / "checkout"
    shutil.copytree(empty, checkout)
    copy(finished / "results", checkout / "results", times)
    assert would_run(checkout).keys() <= products


def test_copied_results_are_completed(
    empty, finished, unbroken, snakemake, would_run, differences, tmp_path
):
    """Without the evaluation of one run, and one run's training."""
    checkout = tmp_path / "checkout"
    shutil.copytree(empty, checkout)
    shutil.rmtree(finished / "results/mini/mini/grpo/N1/seed1/eval")
    shutil.rmtree(finished / "results/mini/mini/respo/N2")
    copy(finished / "results", checkout / "results", times=False)
    todo = would_run(checkout)
    assert (todo["train_local"], todo["generate_local"], todo["cell"]) == (1, 2, 2)
    assert "warm_start" not in todo
    assert "data" not in todo
    result = snakemake(checkout)
    assert result.returncode == 0, result.stdout
    assert differences(unbroken, checkout) == ""
    assert would_run(checkout) == {}


def test_results_in_another_place(finished, would_run, tmp_path, products):
    copy(finished / "results", tmp_path / "away", times=False)
    shutil.rmtree(finished / "results")
    results = tmp_path / "away"
    assert would_run(finished, "--config", "study=mini", f"results={results}").keys() <= products


def test_a_changed_configuration_is_noticed_in_a_copy(empty, finished, would_run, tmp_path):
    checkout = tmp_path / "checkout"
    shutil.copytree(empty, checkout)
    method = checkout / "config/methods/respo.yaml"
    method.write_text(method.read_text().replace("lambda_pos: 2.0", "lambda_pos: 1.5"))
    copy(finished / "results", checkout / "results", times=False)
    todo = would_run(checkout)
    assert (todo["train_local"], todo["cell"]) == (2, 2)
    assert "warm_start" not in todo
