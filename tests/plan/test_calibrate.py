import shutil

import pyarrow as pa
import pytest
import yaml

from respo.cli import UserError
from respo.config import load_model
from respo.parquet import write_parquet
from respo.plan.calibrate import calibrated

HEAD = "s\th:m:s\tmax_rss\n"


@pytest.fixture
def run(tmp_path):
    """A run of two rollout batches that was evaluated on two benchmarks."""
    study = tmp_path / "results" / "small"
    run = study / "big" / "grpo" / "N2" / "seed1"
    (run / "checkpoints" / "4").mkdir(parents=True)
    (run / "config.yaml").write_text("")
    (run / "checkpoints" / "4" / "model.safetensors").write_bytes(bytes(2_500_000))
    (run / "checkpoints" / "4" / "config.json").write_bytes(bytes(500_000))
    metrics = pa.table({"rollout_batch": [1, 1, 2, 2], "seconds": [90.0, 90.0, 20.0, 30.0]})
    write_parquet(run / "metrics.parquet", metrics, {})
    for name, rows, seconds in (("aime24", 30, 20.0), ("math500", 90, 40.0)):
        responses = pa.table({"sample": list(range(rows))})
        write_parquet(run / "eval" / "4" / name / "generations.parquet", responses, {})
        times = study / "benchmarks" / "eval" / "big" / "grpo" / "N2" / "seed1" / "4"
        times.mkdir(parents=True, exist_ok=True)
        (times / f"{name}.generate.tsv").write_text(f"{HEAD}{seconds}\t0:00:20\t1.0\n")
    return run


def pasted(config, text):
    """The estimate, put into the model's file in place of the one that is there."""
    path = config / "models" / "big.yaml"
    model = yaml.safe_load(path.read_text())
    del model["resources"]["estimate"]
    resources = yaml.safe_dump({"resources": model.pop("resources")})
    path.write_text(yaml.safe_dump(model) + resources + text + "\n")
    return load_model(path).resources.estimate.model_dump()


def test_what_a_run_has_cost(run, config):
    text = calibrated(run, config)
    assert pasted(config, text) == {
        # 3 MB of files.
        "weights_gb": 0.003,
        # 120 responses in 60 seconds.
        "responses_per_second": 2.0,
        # Of the second rollout batch; the first is slow.
        "update_seconds": 25.0,
        # No state is left after a run.
        "state_gb": 10.0,
    }
    assert "measured on small/big/grpo/N2/seed1." in text
    assert "state_gb: 10.0  # not measured: as before" in text


def test_a_run_in_training_has_states(run, config):
    (run / "metrics.parquet").unlink()
    for step, size in ((1, 1000), (2, 7_000_000)):
        state = run / "verl" / "checkpoints" / f"global_step_{step}" / "actor"
        state.mkdir(parents=True)
        (state / "optim.pt").write_bytes(bytes(size))
    found = pasted(config, calibrated(run, config))
    assert (found["state_gb"], found["update_seconds"]) == (0.007, 36.0)


def test_one_rollout_batch_is_all_there_is(run, config):
    metrics = pa.table({"rollout_batch": [1, 1], "seconds": [10.0, 20.0]})
    write_parquet(run / "metrics.parquet", metrics, {})
    assert "    update_seconds: 15.0" in calibrated(run, config)


def test_a_model_without_an_estimate_before(run, config):
    path = config / "models" / "big.yaml"
    model = yaml.safe_load(path.read_text())
    del model["resources"]["estimate"]
    path.write_text(yaml.safe_dump(model))
    assert "    # state_gb: not measured; fill it in" in calibrated(run, config)


def test_what_is_no_run(tmp_path, run, config):
    for folder in (tmp_path, run / "eval"):
        with pytest.raises(UserError, match="is no run folder, results/STUDY/MODEL/METHOD"):
            calibrated(folder, config)
    (run.parents[2]).rename(run.parents[3] / "other")
    moved = run.parents[3] / "other" / "grpo" / "N2" / "seed1"
    with pytest.raises(UserError, match=r"models/other\.yaml: no such file"):
        calibrated(moved, config)


def test_a_run_that_has_not_begun(run, config):
    for path in run.iterdir():
        if path.name != "config.yaml":
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(UserError, match="nothing can be measured; train the run"):
        calibrated(run, config)
